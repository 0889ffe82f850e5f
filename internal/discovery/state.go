package discovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/fleet"
)

// writeState replaces a state file in one step: after a crash it has the old
// content or the new one. It is a membership file that only its owner may read.
func writeState(path string, set fleet.Set) (err error) {
	fail := func(err error) error {
		return fmt.Errorf("the membership cannot be kept, nothing is changed: state file: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return fail(err)
	}
	_, err = f.Write(config.EncodeEndpoints(set.Endpoints()))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fail(errors.Join(err, os.Remove(f.Name())))
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// syncFolder makes a rename outlive a loss of power, where the file system can do
// that: the file is in its place already.
func syncFolder(path string) {
	if folder, err := os.Open(path); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}
