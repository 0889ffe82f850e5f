//go:build kubernetes

package main

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

var replicaHost = netip.MustParseAddr("10.77.1.1")

// TestKubernetesPods plays the life of pods with a real API server, its
// controller of EndpointSlices, a real Envoy and this program.
func TestKubernetesPods(t *testing.T) {
	k := startKapi(t)
	k.apply("../../examples/kubernetes/rbac.yaml", "")
	k.apply("../../examples/kubernetes/deployment.yaml", "&dryRun=All")
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, k.token())
	configured := prefixAware(0)
	configured.Extra = quickHealth
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 6, ReplicaHost: replicaHost, Config: configured,
		Membership: func(addresses []string) (string, error) {
			for i, a := range addresses {
				k.pods = append(k.pods, pod{address: netip.MustParseAddrPort(a)})
				if i == 0 {
					k.service(int(k.pods[0].address.Port()), true)
				}
				k.add(i)
			}
			return k.field(token), nil
		},
	})
	podEndsWithStreams(t, s, k)
	podsComeAndGo(t, s, k)
	zonesInEnvoy(t, s, k)
	t.Run("many", func(t *testing.T) { manyPods(t, s, k) })
	t.Run("killed", func(t *testing.T) { serverIsKilled(t, s, k) })
	t.Run("token", func(t *testing.T) {
		refusedUntil(t, s, k, "401", func() { write(t, token, "no-token-of-anybody") }, func() { write(t, token, k.token()) })
	})
	t.Run("rights", func(t *testing.T) {
		refusedUntil(t, s, k, "403",
			func() { k.must(http.MethodDelete, collections["RoleBinding"]+"/warmpath", nil) },
			func() {
				k.must(http.MethodPost, collections["RoleBinding"], object{
					"metadata": object{"name": "warmpath"},
					"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "warmpath"},
					"subjects": []object{{"kind": "ServiceAccount", "name": "warmpath"}},
				})
			})
	})
	noMisses(t, s)
	atRest(t, s)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// zonesInEnvoy sees that the zones of the pods' nodes are Envoy's localities.
func zonesInEnvoy(t *testing.T, s *stack.Stack, k *kapi) {
	t.Helper()
	text, err := s.EnvoyAdmin(t.Context(), "/clusters")
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range k.pods {
		if want := fmt.Sprintf("warmpath_pool::%s::zone::eu-1%s\n", p.address, zoneOf(i)); !strings.Contains(string(text), want) {
			t.Errorf("Envoy does not say %q", want)
		}
	}
}

// manyPods has more than two slices take: nobody answers at their addresses, so
// probes keep requests from them.
func manyPods(t *testing.T, s *stack.Stack, k *kapi) {
	const n = 233
	tr := startTraffic(t, s, 2)
	name := func(i int) (name, ip string) {
		return fmt.Sprintf("many-%d", i), fmt.Sprintf("10.78.%d.%d", i/200, 1+i%200)
	}
	for i := range n {
		pod, ip := name(i)
		k.create(pod, ip, zoneOf(i))
	}
	envoyHas(t, s, n+len(k.pods))
	list := k.must(http.MethodGet, slicesPath, nil)
	if items := list["items"].([]any); len(items) < 3 {
		t.Errorf("%d slices, want at least 3", len(items))
	}
	tr.more(t, s, 50)
	for i := range n {
		pod, _ := name(i)
		k.delete(pod, 0)
	}
	envoyHas(t, s, len(k.pods))
	tr.end()
}

// serverIsKilled lets the API server crash while requests run, and change
// something at once when it is back.
func serverIsKilled(t *testing.T, s *stack.Stack, k *kapi) {
	tr := startTraffic(t, s, 4)
	k.kill()
	awaitError(t, s, "not read, the last good one stays")
	tr.more(t, s, 100)
	if err := s.EnvoyKnows(t.Context(), len(k.pods)); err != nil {
		t.Error(err)
	}
	k.start()
	k.terminate(5)
	k.remove(5)
	envoyHas(t, s, len(k.pods)-1)
	awaitError(t, s, "")
	k.add(5)
	envoyHas(t, s, len(k.pods))
	tr.more(t, s, 100)
	tr.end()
}

// awaitError waits until /status says this of the membership; "" is no error.
func awaitError(t *testing.T, s *stack.Stack, want string) {
	t.Helper()
	if err := s.Await(t.Context(), fmt.Sprintf("the error %q", want), func() error {
		status, err := s.Status(t.Context())
		if said := status.Membership.Error; err == nil && (!strings.Contains(said, want) || (said == "") != (want == "")) {
			err = fmt.Errorf("status says %q", said)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// refusedUntil takes something away that warmpath needs, lets it connect anew, and
// gives it back.
func refusedUntil(t *testing.T, s *stack.Stack, k *kapi, status string, take, give func()) {
	t.Helper()
	tr := startTraffic(t, s, 2)
	take()
	k.kill()
	k.start()
	awaitError(t, s, status)
	k.terminate(4)
	k.remove(4)
	tr.more(t, s, 50)
	if err := s.EnvoyKnows(t.Context(), len(k.pods)); err != nil {
		t.Error(err)
	}
	tr.end() // requests to a pod that has gone unnoticed would be retried
	give()
	envoyHas(t, s, len(k.pods)-1)
	awaitError(t, s, "")
	k.add(4)
	envoyHas(t, s, len(k.pods))
}

// TestKubernetesTimeToFirstRequest measures how long it takes from a change of an
// EndpointSlice, at 100 endpoints, until a request is served by what is new in it. It
// says whether the bound holds, and fails only far beyond: a busy machine is slow.
func TestKubernetesTimeToFirstRequest(t *testing.T) {
	const endpoints, samples = 100, 20
	k := startKapi(t)
	k.apply("../../examples/kubernetes/rbac.yaml", "")
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, k.token())
	configured := prefixAware(0)
	configured.Extra = "health: {slowStart: 0s}"
	var addresses []string
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: endpoints + 1, ReplicaHost: replicaHost, Config: configured,
		Membership: func(all []string) (string, error) {
			addresses = all
			k.service(int(netip.MustParseAddrPort(all[0]).Port()), false)
			k.must(http.MethodPost, slicesPath, handmade(all))
			return k.field(token), nil
		},
	})
	late, body := homeless(t, s)
	var times []time.Duration
	for range samples {
		k.must(http.MethodPatch, slicesPath+"/llama-1", handmade(slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return a == late })))
		envoyHas(t, s, endpoints)
		times = append(times, firstServed(t, s, body, late, func() { k.must(http.MethodPatch, slicesPath+"/llama-1", handmade(addresses)) }))
	}
	judgeTimes(t, times)
	noMisses(t, s)
}

// handmade is a slice of one's own, as a controller of one's own writes them.
func handmade(addresses []string) object {
	list := make([]object, len(addresses))
	for i, a := range addresses {
		list[i] = object{"addresses": []string{netip.MustParseAddrPort(a).Addr().String()}, "conditions": object{"ready": true}}
	}
	return object{
		"metadata":    object{"name": "llama-1", "labels": object{"kubernetes.io/service-name": "llama"}},
		"addressType": "IPv4", "endpoints": list,
		"ports": []object{{"name": "http", "port": netip.MustParseAddrPort(addresses[0]).Port(), "protocol": "TCP"}},
	}
}
