package config

import (
	"context"

	"github.com/warmpath/warmpath/internal/config/watch"
)

// Watch decodes the file again whenever its content changes and reports the
// outcome, until ctx ends; it then returns the context's error. seen is the
// content that is in use already. On an error the receiver keeps what it has:
// the error is [Problems], or why the file cannot be read.
func Watch(ctx context.Context, file watch.File, seen []byte, report func(Config, error)) error {
	return file.Run(ctx, seen, func(e watch.Event) {
		if e.Err != nil {
			report(Config{}, e.Err)
			return
		}
		c, problems := Decode(file.Path, e.Data)
		report(c, problems.Err())
	})
}
