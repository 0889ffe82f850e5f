package config

import (
	"fmt"
	"path/filepath"

	"github.com/warmpath/warmpath/internal/config/strict"
)

// API is a membership that is given over HTTP, on the admin listener.
type API struct {
	// StateFile keeps the membership over restarts, as written: see [API.Path];
	// empty forgets it.
	StateFile string `yaml:"stateFile"`
}

// Path is where the state file is: relative to the folder of the configuration
// file. Empty when there is none.
func (a API) Path(configPath string) string { return beside(configPath, a.StateFile) }

func (a *API) decode(v strict.Value) {
	v.Fields(strict.Field{Name: "stateFile", Decode: strict.Path(&a.StateFile)})
}

// finishAPI refuses memberships over HTTP that everybody on the network could
// change, that nobody could reach, or that would overwrite each other.
func (c *Config) finishAPI(root strict.Value) {
	files := make(map[string]bool)
	check := func(path string, api *API) {
		switch {
		case api == nil:
			return
		case c.Listen.Admin == "":
			root.Report(path, "listen.admin is off, so that nobody could give a membership")
		case Exposed(c.Listen.Admin) && !c.TLS.Admin.Mutual():
			root.Report(path, "everybody who reaches listen.admin, %s, could change the membership: "+
				"want the loopback, a Unix socket, or tls.admin with a clientCA", c.Listen.Admin)
		}
		if api.StateFile == "" {
			return
		}
		file := filepath.Clean(api.StateFile)
		if files[file] {
			root.Report(path+".stateFile", "%q is the state file of two pools", api.StateFile)
		}
		files[file] = true
	}
	check("membership.api", c.Membership.API)
	for i, p := range c.Pools {
		check(fmt.Sprintf("pools[%d].membership.api", i), p.Membership.API)
	}
}
