package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/fleet"
)

// lookupsAtOnce is how many targets are asked for at once.
const lookupsAtOnce = 16

// askService asks for SRV records and for the addresses of their targets.
func (d *DNS) askService(ctx context.Context, resolver Resolver) answer {
	_, records, err := resolver.LookupSRV(ctx, "", "", d.Name)
	if err != nil {
		return answer{err: err}
	}
	// "." as the target says that there is no such service (RFC 2782).
	records = slices.DeleteFunc(slices.Clone(records), func(r *net.SRV) bool { return strings.TrimSuffix(r.Target, ".") == "" })
	if len(records) > MaxEndpoints {
		return answer{err: fmt.Errorf("%q: the answer has %d records, want at most %d", d.Name, len(records), MaxEndpoints)}
	}
	addresses, err := d.targets(ctx, resolver, records)
	if err != nil {
		return answer{err: err}
	}
	return service(records, addresses)
}

// targets asks for the addresses of every target. One that cannot be answered
// for now fails all: what it stands for may be running. One without addresses has
// none.
func (d *DNS) targets(ctx context.Context, resolver Resolver, records []*net.SRV) (map[string][]netip.Addr, error) {
	var mu sync.Mutex
	addresses, total := make(map[string][]netip.Addr), 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookupsAtOnce)
	asked := make(map[string]bool)
	for _, r := range records {
		if asked[r.Target] {
			continue
		}
		asked[r.Target] = true
		group.Go(func() error {
			found, err := resolver.LookupNetIP(ctx, network(d.Family), r.Target)
			var failure *net.DNSError
			if errors.As(err, &failure) && failure.IsNotFound {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			addresses[r.Target] = found
			if total += len(found); err == nil && total > MaxEndpoints {
				err = fmt.Errorf("%q: the targets have more than %d addresses", d.Name, MaxEndpoints)
			}
			return err
		})
	}
	return addresses, group.Wait()
}

// service makes endpoints of records, in whatever order these come: of records
// that lead to one address the one of the first priority and the greatest weight
// counts.
func service(records []*net.SRV, addresses map[string][]netip.Addr) (a answer) {
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, func(a, b *net.SRV) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(b.Weight, a.Weight),
			strings.Compare(a.Target, b.Target), cmp.Compare(a.Port, b.Port))
	})
	scale := newScale(sorted)
	rank := -1
	for i, r := range sorted {
		if i == 0 || r.Priority != sorted[i-1].Priority {
			rank++
		}
		found := addresses[r.Target]
		if len(found) == 0 {
			a.problems = append(a.problems, config.Problem{File: "dns", Value: fmt.Sprintf("%q", r.Target), Message: "has no address, its SRV record is left out"})
		}
		for _, ip := range found {
			a.add(ip, r.Port, fleet.Endpoint{Weight: scale.weight(r.Weight), Priority: uint8(min(rank, fleet.MaxPriority))})
		}
	}
	return a
}

// scale brings the weights of SRV records, 0 to 65535, into the range of ours.
// Only their proportions count, so they are made as small as they can be: name
// servers of Kubernetes divide 100 by the number of endpoints, and one more would
// change the weight of each.
type scale struct{ divisor, most uint32 }

func newScale(records []*net.SRV) scale {
	var s scale
	for _, r := range records {
		s.divisor, s.most = gcd(s.divisor, uint32(r.Weight)), max(s.most, uint32(r.Weight))
	}
	s.divisor = max(s.divisor, 1)
	s.most /= s.divisor
	return s
}

// weight of a record. Weight 0, "a very small chance", is the least there is.
func (s scale) weight(w uint16) uint32 {
	reduced := uint32(w) / s.divisor
	if s.most > fleet.MaxWeight {
		reduced = (reduced*fleet.MaxWeight + s.most/2) / s.most
	}
	return max(reduced, fleet.MinWeight)
}

func gcd(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
