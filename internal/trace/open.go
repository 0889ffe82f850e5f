package trace

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Open reads a trace from a file, or from all .jsonl, .csv and .gz files of a
// folder in the order of their names, as if they were one. Files may be gzip,
// whatever their name says.
func Open(path, format string, o Options) (Trace, error) {
	name := filepath.Base(path)
	info, err := os.Stat(path)
	if err != nil {
		return Trace{}, fmt.Errorf("read trace: %w", err)
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = filesIn(path); err != nil {
			return Trace{}, fmt.Errorf("read trace: %w", err)
		}
	}
	in := new(input)
	for _, p := range paths {
		file, err := os.Open(p)
		if err != nil {
			return Trace{}, fmt.Errorf("read trace: %w", err)
		}
		defer file.Close()
		in.sources = append(in.sources, source{name: p, r: file})
	}
	return read(in, name, format, o)
}

// Read reads a trace, which may be gzip. Of a format of several files it takes
// all of them, one behind the other in any order.
func Read(r io.Reader, format string, o Options) (Trace, error) {
	return read(&input{sources: []source{{r: r}}}, "", format, o)
}

// filesIn returns the paths of the traces in a folder, in the order of their
// names.
func filesIn(folder string) (paths []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".jsonl", ".csv", ".gz":
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no .jsonl, .csv or .gz file in this folder", folder)
	}
	return paths, nil
}

func read(in *input, name, format string, o Options) (Trace, error) {
	f, err := formatNamed(format)
	if err != nil {
		return Trace{}, err
	}
	if o, err = o.withDefaults(f); err != nil {
		return Trace{}, fmt.Errorf("read trace as %s: %w", f.name, err)
	}
	in.limits = o.Limits
	a := &assembly{trace: Trace{Name: name}, limits: o.Limits, see: o.Prompt}
	if err := f.read(in, o, a); err != nil {
		return Trace{}, fmt.Errorf("read trace as %s: %w", f.name, err)
	}
	t, err := a.finish(f)
	if err != nil {
		return Trace{}, fmt.Errorf("read trace as %s: %w", f.name, err)
	}
	return t, nil
}
