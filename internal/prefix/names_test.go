package prefix

import "testing"

// A number that is no API has the name of the APIs that are not known.
func TestUnknownAPIHasAName(t *testing.T) {
	for _, a := range []API{numAPIs, numAPIs + 1, 255} {
		if got := a.String(); got != "other" {
			t.Errorf("API %d is named %q", a, got)
		}
	}
}
