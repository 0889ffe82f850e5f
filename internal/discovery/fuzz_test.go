package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/fleet"
)

// between stands between two contents of a file's life.
const between = "\n====\n"

// FuzzFile lives through any contents of a membership file, one after the other:
// no mistake takes an endpoint away, and what is a member can be written down and
// read again.
func FuzzFile(f *testing.F) {
	golden, err := os.ReadFile("testdata/golden/life")
	if err != nil {
		f.Fatal(err)
	}
	var life []string
	for block := range strings.SplitSeq(string(golden), "\n\n") {
		_, content, _ := strings.Cut("\n"+block, "\nfile\n")
		content, _, _ = strings.Cut(content, "----")
		life = append(life, content)
		f.Add([]byte(content))
	}
	for chunk := range slices.Chunk(life, 6) {
		f.Add([]byte(strings.Join(chunk, between)))
	}
	f.Add([]byte("endpoints: [{address: '10.0.0.1:80'}, {address: '10.0.0.2:80', weight: 3}]" + between +
		"endpoints: [{address: '10.0.0.1:80'}, {address: '10.0.0.2:80', weight: 0}, {address: 'gpu-1:80'}]"))
	f.Add([]byte(`{"endpoints":[{"address":"[::ffff:10.0.0.1]:80","weight":1000,"state":"draining","zone":"a~"}]}` + between +
		"endpoints:\n- &a {address: '10.0.0.1:80'}\n- *a\n- address: 10.0.0.1:80" + between + "unreadable" + between + "endpoints: []"))
	f.Fuzz(func(t *testing.T, files []byte) {
		var last Update
		for _, content := range strings.SplitN(string(files), between, 8) {
			event := watch.Event{Data: []byte(content)}
			if content == "unreadable" {
				event = watch.Event{Err: errors.New("is a directory")}
			}
			now := next(last, "endpoints.yaml", event)
			checkStep(t, last, now, event)
			checkWritten(t, now.Set)
			if again := next(now, "endpoints.yaml", event); !again.Set.Equal(now.Set) || (again.Err == nil) != (now.Err == nil) {
				t.Errorf("read twice, it says %s and then %s", describe(now), describe(again))
			}
			last = now
		}
	})
}

// checkStep holds the state after an event against the one before.
func checkStep(t *testing.T, last, now Update, event watch.Event) {
	list, refused := config.DecodeEndpoints("endpoints.yaml", event.Data)
	if now.Err != nil {
		if !now.Set.Equal(last.Set) || len(now.Kept) > 0 || !now.LastGood.Equal(last.LastGood) {
			t.Errorf("a refused file changes\n%sto\n%s", describe(last), describe(now))
		}
		if s := now.Err.Error(); !strings.HasPrefix(s, "membership file") || len(s) > 32<<10 {
			t.Errorf("error of %d bytes: %.200q", len(s), s)
		}
		return
	}
	if event.Err != nil || len(refused) > 0 {
		t.Fatalf("taken over in spite of %v %v", event.Err, refused)
	}
	listed := make(map[string]fleet.Endpoint)
	for _, e := range list.Endpoints {
		listed[e.Address] = e
	}
	for _, e := range now.Set.Endpoints() {
		i, before := last.Set.Index(e.Address)
		if kept := slices.Contains(now.Kept, e.Address); kept != (listed[e.Address] != e) || kept && (!before || last.Set.At(i) != e) {
			t.Errorf("%+v is neither in the file nor kept as it was", e)
		}
	}
	for _, e := range last.Set.Endpoints() {
		_, stays := now.Set.Index(e.Address)
		if _, named := listed[e.Address]; !stays && (named || slices.Contains(list.Refused, e.Address)) {
			t.Errorf("%+v is in the file and was taken away", e)
		}
	}
	if now.Set.Len() == 0 && len(list.Problems) > 0 {
		t.Errorf("empty because of %v", list.Problems)
	}
}

// checkWritten writes a membership as YAML and as JSON and reads both.
func checkWritten(t *testing.T, set fleet.Set) {
	type entry struct {
		Address string `json:"address"`
		Weight  uint32 `json:"weight"`
		State   string `json:"state"`
		Zone    string `json:"zone"`
	}
	entries, yaml := []entry{}, "endpoints: []\n"
	if set.Len() > 0 {
		yaml = "endpoints:\n"
	}
	for _, e := range set.Endpoints() {
		entries = append(entries, entry{e.Address, e.Weight, e.State.String(), e.Zone})
		yaml += fmt.Sprintf("- state: %s\n  zone: '%s'\n  weight: %d\n  address: \"%s\"\n", e.State, strings.ReplaceAll(e.Zone, "'", "''"), e.Weight, e.Address)
	}
	text, err := json.Marshal(map[string][]entry{"endpoints": entries})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{yaml, string(text)} {
		again := next(Update{}, "again.yaml", watch.Event{Data: []byte(file)})
		if again.Err != nil || len(again.Problems) > 0 || !again.Set.Equal(set) || again.Set.Version() != set.Version() {
			t.Errorf("%s\nis read as\n%s", file, describe(again))
		}
	}
}
