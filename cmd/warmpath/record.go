package main

import (
	"errors"
	"fmt"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/recording"
)

// newRecorder makes a recorder, if the configuration wants that.
func (p *program) newRecorder() error {
	c := p.config.Recording
	if c.Folder == "" {
		return nil
	}
	salt, err := recordingSetup(c, p.path)
	if err != nil {
		return usageError{err}
	}
	p.salt = salt
	for _, why := range recording.Reasons() {
		p.metrics.Unrecorded.WithLabelValues(string(why)) // 0 can be seen, too
	}
	folder := c.FolderPath(p.path)
	p.recorder = recording.New(recording.Options{
		Folder: folder, Ratio: c.SampleRatio, FileBytes: c.FileBytes, Files: c.Files, Salt: salt,
		Written: func(n int) { p.metrics.Recorded.Add(float64(n)) },
		Dropped: func(why recording.Reason, n int) { p.metrics.Unrecorded.WithLabelValues(string(why)).Add(float64(n)) },
		Failing: func(err error) {
			if err != nil {
				p.log.Error("requests are not recorded", "error", err)
				return
			}
			p.log.Info("requests are recorded again", "folder", folder)
		},
	})
	p.log.Info("requests are recorded", "folder", folder, "sampleRatio", c.SampleRatio)
	return nil
}

// recordingSetup returns the salt that the configuration names, or one that is made
// up, and an error for all that keeps requests from being recorded.
func recordingSetup(c config.Recording, configPath string) (recording.Salt, error) {
	var problems []error
	if c.Folder != "" {
		if err := recording.CheckFolder(c.FolderPath(configPath)); err != nil {
			problems = append(problems, fmt.Errorf("recording.folder: %w", err))
		}
	}
	salt := recording.NewSalt()
	if path := c.SaltPath(configPath); path != "" {
		var err error
		if salt, err = recording.ReadSalt(path); err != nil {
			problems = append(problems, fmt.Errorf("recording.saltFile: %w", err))
		}
	}
	return salt, errors.Join(problems...)
}

// stopRecording writes what has ended.
func (p *program) stopRecording() {
	if p.recorder != nil {
		p.recorder.Close()
	}
}
