package route

import "slices"

// A twin is a router of a world of its own beside a real one, with the same members,
// zone and adapters: what it counts and remembers is its own, so that nothing that is
// decided there is felt by a request.

// Twin returns a twin of the router with a policy of its own. It follows the router's
// changes but for those of its policy, until [Router.Part]. It stands alone where the
// router has others that tell it of their requests: it does not hear them.
func (r *Router) Twin(policy Policy) *Router {
	r.mu.Lock()
	defer r.mu.Unlock()
	twin := NewRouter(policy)
	twin.SetRouters(r.around.routers, false)
	twin.SetZone(r.around.zone)
	twin.SetAdapters(r.around.adapters)
	twin.SetMembership(r.set)
	r.twins = append(r.twins, twin)
	return twin
}

// Part lets a twin go: it follows no more. Slots that are held there can still be given
// back.
func (r *Router) Part(twin *Router) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.twins = slices.DeleteFunc(r.twins, func(t *Router) bool { return t == twin })
}

// eachTwin tells the twins of a change. r.mu is held; a twin has none of its own.
func (r *Router) eachTwin(change func(*Router)) {
	for _, t := range r.twins {
		change(t)
	}
}
