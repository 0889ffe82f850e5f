package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// Config is a run.
type Config struct {
	Jobs []Job
	// Replicas are the fleet at the beginning.
	Replicas []Replica
	Events   []Event
	Routers  int
	Policy   Maker
	// Clients is how many send at once in a closed loop; 0 is an open loop, by the
	// jobs' times.
	Clients int
	// Speed divides the times of arrival.
	Speed float64
	// Seed makes what is random: the choices, and the replicas' addresses, which say
	// where a key has its home. In a trace of few sessions that is much of the result.
	Seed uint64
	// Window is the length of the Result's windows; 0 for none.
	Window time.Duration
	// Gossip is how often routers tell each other of their loads; 0 for never.
	Gossip time.Duration
	// Scale, if set, makes the fleet grow with what the policies want.
	Scale *Scale
	// Progress, if set, is told of every thousandth request.
	Progress func(done, of int)
}

// Replica is one of the fleet.
type Replica struct {
	Params engine.Params
	// Weight is what the routers are told, 1 if 0.
	Weight int
}

// run is the state of a run.
type run struct {
	config   Config
	random   *rand.Rand
	now      time.Duration
	replicas []*replica
	policies []Policy
	next     int // job
	queue    []*running
	events   []Event
	result   Result
	left     int
	homes    map[uint64]int
	gossip   gossip
	scaler   scaler
}

// Run simulates until every job is done.
func Run(c Config) (Result, error) {
	r := &run{
		config: c, random: rand.New(rand.NewPCG(c.Seed, 0x5eed)), left: len(c.Jobs), homes: make(map[uint64]int),
		gossip: gossip{interval: c.Gossip},
		events: slices.SortedStableFunc(slices.Values(c.Events), func(a, b Event) int { return int(a.At - b.At) }),
	}
	if r.config.Routers < 1 {
		r.config.Routers = 1
	}
	if r.config.Speed <= 0 {
		r.config.Speed = 1
	}
	for _, x := range c.Replicas {
		if err := r.add(x); err != nil {
			return Result{}, err
		}
	}
	for i := range r.config.Routers {
		r.policies = append(r.policies, c.Policy(i, r.config.Routers))
	}
	r.gossip.begin(r.policies)
	r.members()
	r.watch()
	for i := 0; i < c.Clients && r.next < len(c.Jobs); i++ {
		if err := r.arrive(i); err != nil {
			return Result{}, err
		}
	}
	for r.left > 0 {
		if err := r.step(); err != nil {
			return Result{}, err
		}
	}
	for _, x := range r.replicas {
		r.result.Shares = append(r.result.Shares, Share{x.requests, x.prefill})
		n := x.engine.Counters()
		r.result.HitTokens += n.HitTokens
		r.result.PromptTokens += n.QueriedTokens
	}
	r.result.Elapsed = r.now
	r.result.sort()
	return r.result, nil
}

func (r *run) add(x Replica) error {
	p := x.Params
	p.BlockTokens = ChunkTokens
	e, err := engine.NewScheduler(p)
	if err != nil {
		return fmt.Errorf("replica %d: %w", len(r.replicas), err)
	}
	r.replicas = append(r.replicas, &replica{
		engine: e, byID: make(map[*engine.Request]*running), stepEnds: never, up: true, alive: true, weight: max(x.Weight, 1),
	})
	return nil
}

// members tells the policies who is up.
func (r *run) members() {
	var list []Member
	for i, x := range r.replicas {
		if x.up {
			list = append(list, Member{Replica: i, Weight: x.weight, Address: address(i, r.config.Seed)})
		}
	}
	for _, p := range r.policies {
		p.Members(r.now, list)
	}
}

// step goes on to the next thing that happens.
func (r *run) step() error {
	at, what := r.nextArrival(), -1
	if len(r.queue) > 0 && r.queue[0].picked <= at { // what has been decided goes first
		at, what = r.queue[0].picked, -2
	}
	if len(r.events) > 0 && r.events[0].At <= at {
		at, what = r.events[0].At, -3
	}
	for i, x := range r.replicas {
		if x.stepEnds <= at {
			at, what = x.stepEnds, i
		}
	}
	if at == never {
		return fmt.Errorf("simulate: %d jobs are left and nothing happens", r.left)
	}
	r.gossip.rounds(at, r.policies)
	r.now = at
	switch what {
	case -1:
		return r.arrive(-1)
	case -2:
		return r.submit()
	case -3:
		return r.happen()
	default:
		return r.end(what)
	}
}

func (r *run) nextArrival() time.Duration {
	if r.config.Clients > 0 || r.next == len(r.config.Jobs) {
		return never
	}
	return time.Duration(float64(r.config.Jobs[r.next].At) / r.config.Speed)
}

// arrive lets the next job arrive and be decided.
func (r *run) arrive(client int) error {
	j := &r.config.Jobs[r.next]
	r.next++
	x := &running{job: j, client: client, arrived: r.now}
	if r.config.Routers > 1 {
		x.router = r.random.IntN(r.config.Routers)
	}
	if p := r.config.Progress; p != nil && r.next%1000 == 0 {
		p(r.next, len(r.config.Jobs))
	}
	return r.decide(x)
}

func (r *run) decide(x *running) error {
	c := r.policies[x.router].Pick(r.now, &Query{Job: x.job, Truth: r, Random: r.random.Uint64()})
	if c.Replica < 0 || c.Replica >= len(r.replicas) || !r.replicas[c.Replica].up {
		return fmt.Errorf("simulate: policy chose replica %d, which is not a member", c.Replica)
	}
	if c.Overflow {
		r.result.Overflowed++
	}
	if c.Keyed {
		r.result.Keyed++
		if before, ok := r.homes[c.Key]; ok && before != c.Home {
			r.result.Moved++
		}
		r.homes[c.Key] = c.Home
	}
	x.replica = c.Replica
	// The front end's time is the same everywhere, so the queue stays in order.
	x.picked = r.now + r.replicas[c.Replica].engine.Params().FrontEnd
	r.queue = append(r.queue, x)
	return nil
}

// submit gives the first in the queue to its engine.
func (r *run) submit() error {
	x := r.queue[0]
	r.queue[0], r.queue = nil, r.queue[1:]
	e := r.replicas[x.replica]
	if !e.alive {
		r.policies[x.router].Done(r.now, x.replica, x.job)
		return r.decide(x)
	}
	x.request = &engine.Request{PromptTokens: max(x.job.Tokens, 1), OutputTokens: max(x.job.Output, 1), Blocks: x.job.Chunks}
	if err := e.engine.Submit(x.request); err != nil {
		return fmt.Errorf("job %d: %w", r.next, err)
	}
	e.byID[x.request] = x
	e.requests++
	e.begin(r.now, r.quiet(x.replica))
	return nil
}

// quiet is how long nothing can be submitted to a replica.
func (r *run) quiet(replica int) time.Duration {
	until := r.nextArrival()
	if until != never {
		until += r.replicas[replica].engine.Params().FrontEnd
	}
	if len(r.queue) > 0 {
		until = min(until, r.queue[0].picked)
	}
	if len(r.events) > 0 {
		until = min(until, r.events[0].At)
	}
	if r.config.Clients > 0 { // whoever finishes sends again
		for i, x := range r.replicas {
			if i != replica {
				until = min(until, x.stepEnds)
			}
		}
	}
	if until == never {
		return never
	}
	return max(until-r.now, 0)
}

// end ends the step of a replica.
func (r *run) end(i int) error {
	x := r.replicas[i]
	x.stepEnds = never
	done := x.engine.End()
	x.prefill += int64(done.PrefillTokens)
	for _, q := range done.First {
		j := x.byID[q]
		j.started = true
		ttft := r.now - j.arrived
		r.result.TTFT = append(r.result.TTFT, ttft)
		r.count(j)
		r.policies[j.router].First(r.now, i, j.job, ttft)
	}
	for _, q := range done.Finished {
		j := x.byID[q]
		delete(x.byID, q)
		r.left--
		r.result.Requests++
		r.result.OutputTokens += int64(j.job.Output)
		r.policies[j.router].Done(r.now, i, j.job)
		if j.client >= 0 && r.next < len(r.config.Jobs) {
			if err := r.arrive(j.client); err != nil {
				return err
			}
		}
	}
	x.begin(r.now, r.quiet(i))
	return nil
}

func (r *run) count(j *running) {
	if r.config.Window <= 0 {
		return
	}
	n := int(j.arrived / r.config.Window)
	for len(r.result.Windows) <= n {
		r.result.Windows = append(r.result.Windows, Window{})
	}
	w := &r.result.Windows[n]
	w.Prompt += int64(j.job.Tokens)
	w.Hit += int64(j.request.Cached())
}

// happen lets the next event happen.
func (r *run) happen() error {
	e := r.events[0]
	r.events = r.events[1:]
	switch e.Kind {
	case Add:
		r.scaler.coming = max(r.scaler.coming-1, 0)
		if err := r.add(r.config.Replicas[0]); err != nil {
			return err
		}
		r.members()
		return nil
	case look:
		r.grow()
		return nil
	case Remove, Crash:
		x := r.replicas[e.Replica]
		x.up = false
		r.members()
		if e.Kind == Crash {
			return r.crash(e.Replica)
		}
		return nil
	default:
		return fmt.Errorf("event kind %d: want Add, Remove or Crash", e.Kind)
	}
}

// crash sends what ran on a replica elsewhere.
func (r *run) crash(i int) error {
	x := r.replicas[i]
	x.alive, x.stepEnds = false, never
	var lost []*running
	for _, j := range x.byID {
		lost = append(lost, j)
	}
	slices.SortFunc(lost, func(a, b *running) int { return int(a.arrived - b.arrived) })
	x.byID = nil
	for _, j := range lost {
		r.policies[j.router].Done(r.now, i, j.job)
		if err := r.decide(j); err != nil {
			return err
		}
	}
	return nil
}

// Cached implements Truth.
func (r *run) Cached(replica int, j *Job) int {
	return r.replicas[replica].engine.Cached(engine.Prompt{Tokens: j.Tokens, Blocks: j.Chunks})
}
