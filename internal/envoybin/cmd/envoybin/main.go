// Command envoybin prints the path of an Envoy that warmpath can use. With
// -version it first installs that release when the machine has none; the
// Makefile passes the pins of Tools.mk.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/warmpath/warmpath/internal/envoybin"
)

func main() {
	version := flag.String("version", "", "install this Envoy `release` if none is found")
	digests := flag.String("sha256", "", "space-separated `digests` of the release's wheels")
	exact := flag.Bool("exact", false, "use just the release of -version, whatever else the machine has")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, v, err := locate(ctx, *version, strings.Fields(*digests), *exact)
	if err != nil {
		fmt.Fprintln(os.Stderr, "envoybin:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "Envoy", v)
	fmt.Println(path)
}

func locate(ctx context.Context, version string, digests []string, exact bool) (string, envoybin.Version, error) {
	root, err := envoybin.ModuleRoot(".")
	if err != nil {
		return "", envoybin.Version{}, err
	}
	places := envoybin.PlacesFrom(os.Getenv, root)
	if !exact {
		path, v, err := envoybin.Find(ctx, places)
		if !errors.Is(err, envoybin.ErrNotFound) || version == "" {
			return path, v, err
		}
	}
	v, err := envoybin.ParseVersion(version)
	if err != nil {
		return "", envoybin.Version{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", envoybin.Version{}, fmt.Errorf("where to keep Envoy: %w", err)
	}
	release := envoybin.Release{Version: v, SHA256: digests}
	path, err := envoybin.Install(ctx, release, places.Tools, filepath.Join(cache, "warmpath"))
	return path, v, err
}
