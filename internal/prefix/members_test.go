package prefix

import "testing"

// The bound of the members that are told apart is each object's own: what the
// objects around it have does not count.
func TestMembersAreCountedByObject(t *testing.T) {
	for _, around := range []int{0, 1, 20, 100} {
		var s Scanner
		for i := range around {
			s.members = append(s.members, member{name: uint64(1000 + i)})
		}
		f := &frame{members: around, hash: true}
		for i := range uint64(maxMembers) {
			s.addMember(f, member{name: i, value: 1})
			s.addMember(f, member{name: i, value: 2}) // of duplicates the last counts
		}
		if n := len(s.members) - around; n != maxMembers || f.sum != 0 {
			t.Fatalf("within %d members: %d of %d are kept, sum %x", around, n, maxMembers, f.sum)
		}
		want := uint64(0)
		for i := range uint64(maxMembers) {
			want += mix(i, 2)
		}
		for range 2 { // behind the bound all count
			s.addMember(f, member{name: maxMembers, value: 3})
			want += mix(maxMembers, 3)
		}
		if got := s.digestOf(f); got != mix(tagObject, want) || len(s.members) != around {
			t.Errorf("within %d members: digest %x, want %x; %d members are left", around, got, mix(tagObject, want), len(s.members))
		}
	}
}
