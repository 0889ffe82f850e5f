// Command protogen generates the Go code of the messages in proto, or with -check
// says whether it is up to date. It needs no protoc: protocompile reads the files,
// protoc-gen-go writes the code.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	plugin := flag.String("plugin", "protoc-gen-go", "`path` of protoc-gen-go")
	folder := flag.String("folder", "proto", "`folder` of the .proto files")
	check := flag.Bool("check", false, "change nothing, fail if a file would change")
	flag.Parse()
	if err := run(*plugin, *folder, *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(plugin, folder string, check bool) error {
	sources, err := protoFiles(folder)
	if err != nil {
		return err
	}
	request, err := compile(folder, sources)
	if err != nil {
		return err
	}
	files, err := generate(plugin, request)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		errs = append(errs, write(filepath.Join(folder, f.GetName()), []byte(f.GetContent()), check))
	}
	return errors.Join(errs...)
}

// protoFiles are the .proto files below a folder, by their paths in it.
func protoFiles(folder string) (paths []string, err error) {
	err = fs.WalkDir(os.DirFS(folder), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".proto") {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

func compile(folder string, paths []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{folder}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	results, err := compiler.Compile(context.Background(), paths...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: paths, Parameter: proto.String("paths=source_relative")}
	for _, r := range results {
		d := proto.Clone(protoutil.ProtoFromFileDescriptor(r)).(*descriptorpb.FileDescriptorProto)
		request.ProtoFile = append(request.ProtoFile, d)
	}
	return request, nil
}

func generate(plugin string, request *pluginpb.CodeGeneratorRequest) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	command := exec.Command(plugin)
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plugin, err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return nil, fmt.Errorf("%s: %w", plugin, err)
	}
	if response.Error != nil {
		return nil, fmt.Errorf("%s: %s", plugin, response.GetError())
	}
	return response.File, nil
}

func write(path string, content []byte, check bool) error {
	if !check {
		return os.WriteFile(path, content, 0o644)
	}
	switch now, err := os.ReadFile(path); {
	case err != nil:
		return err
	case !bytes.Equal(now, content):
		return fmt.Errorf("%s is not what its .proto file makes of it: run make proto", path)
	}
	return nil
}
