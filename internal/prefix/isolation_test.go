package prefix

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// No choice of tenant, salt, model, adapter and text gives the key of another
// choice, also where the same letters stand in a row.
func TestTenantsDoNotCollide(t *testing.T) {
	type request struct{ tenant, salt, model, adapter, text string }
	key := func(r request) uint64 {
		body, err := json.Marshal(map[string]string{"cache_salt": r.salt, "model": r.model, "lora_path": r.adapter, "prompt": r.text})
		if err != nil {
			t.Fatal(err)
		}
		result, _ := readWhole(Head{Path: "/v1/completions", TenantHeader: r.tenant}, 1024, body)
		if result.Tenant != r.tenant {
			t.Fatalf("tenant %q, want %q", result.Tenant, r.tenant)
		}
		return result.Key
	}
	rapid.Check(t, func(t *rapid.T) {
		// One row of letters, cut at two sets of places.
		letters := rapid.StringMatching(`[ab:/]{5,12}`).Draw(t, "letters")
		cut := func(name string) request {
			at := rapid.SliceOfN(rapid.IntRange(0, len(letters)-1), 4, 4).Draw(t, name)
			for i := 1; i < len(at); i++ { // in order
				at[i] = max(at[i], at[i-1])
			}
			return request{letters[:at[0]], letters[at[0]:at[1]], letters[at[1]:at[2]], letters[at[2]:at[3]], letters[at[3]:]}
		}
		a, b := cut("a"), cut("b")
		if (key(a) == key(b)) != (a == b) {
			t.Fatalf("%+v has the key %x, %+v %x", a, key(a), b, key(b))
		}
	})
}
