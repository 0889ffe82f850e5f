package config

import (
	"regexp"

	"github.com/warmpath/warmpath/internal/config/strict"
)

// maxPolicies bounds the named policies: a gateway has a handful.
const maxPolicies = 100

var policyName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,59}$`)

// decodePolicies reads the list of named policies. What one leaves out is as in
// an empty file, not as in the default policy: a policy reads the same whatever
// stands elsewhere.
func (c *Config) decodePolicies(v strict.Value) {
	named := make(map[string]bool)
	isList := v.Each(func(i int, item strict.Value) {
		if i == maxPolicies {
			item.Reject("is one too many (want %d policies at most)", maxPolicies)
		}
		if i >= maxPolicies {
			return
		}
		p := NamedPolicy{RoutingConfig: Default().RoutingConfig}
		isMapping := item.Fields(append(p.fields(), strict.Field{Name: "name", Decode: func(v strict.Value) {
			strict.Text(&p.Name)(v)
			switch {
			case p.Name != "" && !policyName.MatchString(p.Name):
				v.Reject("is not a name (want 1..60 letters, digits, '.', '-', '_', a letter first)")
			case named[p.Name]:
				v.Reject("is the name of two policies")
			}
			named[p.Name] = true
		}})...)
		if isMapping && p.Name == "" {
			item.Report("name", "is missing: Envoy's configuration refers to a policy by it")
		}
		c.Policies = append(c.Policies, p)
	})
	if !isList {
		c.Policies = nil
	}
}
