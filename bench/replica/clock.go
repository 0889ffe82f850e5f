package replica

import (
	"context"
	"time"
)

// sleep waits for d, or until the client has left.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pace sleeps from deadline to deadline, so that the wake-up delays of many
// short sleeps do not add up.
type pace struct{ next time.Time }

func (p *pace) sleep(ctx context.Context, step time.Duration, notBefore time.Time) error {
	p.next = p.next.Add(step)
	if p.next.Before(notBefore) {
		p.next = notBefore
	}
	return sleep(ctx, time.Until(p.next))
}
