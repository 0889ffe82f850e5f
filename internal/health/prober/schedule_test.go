package prober

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The slot of an address is one moment of every interval.
func TestSlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Unix(1000, 0)
		interval := time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "interval"))
		s := newSchedule(begin, interval)
		a := address(rapid.IntRange(0, 999).Draw(t, "address"))
		now := begin.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "now")))
		slot := s.slot(a, now)
		if wait := slot.Sub(now); wait < 0 || wait >= interval {
			t.Fatalf("slot %v after now, interval %v", wait, interval)
		}
		if (slot.Sub(begin)-s.slot(a, begin).Sub(begin))%interval != 0 {
			t.Fatalf("slots %v and %v do not lie whole intervals of %v apart", s.slot(a, begin), slot, interval)
		}
		if s.slot(a, slot) != slot {
			t.Fatal("a slot is not its own next")
		}
	})
}

// Targets are taken in the order in which they are due, and only then; removed
// ones are not.
func TestScheduleAgainstTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Unix(1000, 0)
		s := newSchedule(begin, time.Second)
		var list []*target
		now := begin
		for i := range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "passed")))
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0, 1:
				n := &target{address: address(i)}
				s.add(n, now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "due"))))
				list = append(list, n)
			case 2:
				if len(list) > 0 {
					j := rapid.IntRange(0, len(list)-1).Draw(t, "which")
					s.remove(list[j])
					s.remove(list[j]) // nothing to do
					list = append(list[:j], list[j+1:]...)
				}
			default:
				list = checkTake(t, s, list, now)
			}
		}
	})
}

func checkTake(t *rapid.T, s *schedule, list []*target, now time.Time) []*target {
	earliest := -1
	for i, n := range list {
		if earliest < 0 || n.due.Before(list[earliest].due) {
			earliest = i
		}
	}
	if next := s.next(); earliest < 0 != next.IsZero() || earliest >= 0 && !next.Equal(list[earliest].due) {
		t.Fatalf("next %v with %d waiting", next, len(list))
	}
	got := s.take(now)
	if earliest < 0 || list[earliest].due.After(now) {
		if got != nil {
			t.Fatalf("took one that is due at %v, at %v", got.due, now)
		}
		return list
	}
	if got == nil || !got.due.Equal(list[earliest].due) {
		t.Fatalf("took %v, want one due at %v", got, list[earliest].due)
	}
	for i, n := range list {
		if n == got {
			return append(list[:i], list[i+1:]...)
		}
	}
	t.Fatal("took one that was not there")
	return nil
}
