package config

import (
	"path/filepath"

	"github.com/warmpath/warmpath/internal/config/strict"
)

// Recording says what is written down of the traffic, for replays: lengths and
// salted hashes, no text.
type Recording struct {
	// Folder is where the files go, as written; see [Recording.FolderPath]. Empty
	// records nothing.
	Folder string `yaml:"folder"`
	// SampleRatio is the share of the prompts' beginnings that is recorded, 0 to 1.
	SampleRatio float64 `yaml:"sampleRatio"`
	// FileBytes is the largest file, Files how many there are at most.
	FileBytes int64 `yaml:"fileBytes"`
	Files     int   `yaml:"files"`
	// SaltFile has the salt of the hashes, as written; see [Recording.SaltPath].
	// Empty for one that the process makes up.
	SaltFile string `yaml:"saltFile"`
}

// FolderPath is where the files go: relative to the folder of the configuration
// file. Empty if nothing is recorded.
func (r Recording) FolderPath(configPath string) string { return beside(configPath, r.Folder) }

// SaltPath is where the salt is, empty if there is no file.
func (r Recording) SaltPath(configPath string) string { return beside(configPath, r.SaltFile) }

// beside is a path relative to the folder of the configuration file.
func beside(configPath, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(configPath), path)
}

func (r *Recording) decode(v strict.Value) {
	// A file holds the longest line many times over; the ceilings keep a typing
	// error from filling a disk.
	v.Fields(
		strict.Field{Name: "folder", Decode: strict.Path(&r.Folder)},
		strict.Field{Name: "sampleRatio", Decode: strict.Float(&r.SampleRatio, 0, 1)},
		strict.Field{Name: "fileBytes", Decode: strict.Int(&r.FileBytes, 1<<20, 16<<30)},
		strict.Field{Name: "files", Decode: strict.Int(&r.Files, 1, 1000)},
		strict.Field{Name: "saltFile", Decode: strict.Path(&r.SaltFile)},
	)
}
