package evict

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

const (
	// gap is how far sweeps are apart at least. Two without a trace prove it, since one
	// may have been answered while a server was about to enter somebody in its list.
	gap = 100 * time.Millisecond
	// maxDoubtful sweeps with a doubt end the try: whom a server does not answer twice
	// had better come back later.
	maxDoubtful = 2
	// maxBusy sweeps that found somebody end it: a client comes back faster than it is
	// dropped, so that something lets it in.
	maxBusy = 10
	// maxMeetings bounds how often new servers may turn up.
	maxMeetings = 5
)

// Run drops the targets' connections and returns when it is proved that they have
// none. It is refused with Malformed for targets that name nobody, and with
// EvictionUnproved, as an *Unproved, when somebody is left or a server leaves a doubt;
// the caller tries again later. Whoever joins until the first sweep that may prove
// something has a share in the outcome, whatever it is. Other errors mean that nobody could be asked. tell
// hears how far it is, on the caller's goroutine; it may be nil.
func Run(ctx context.Context, ports Ports, ask Ask, tell func(Progress)) (Outcome, error) {
	r, err := begin(ports, ask, tell)
	if err != nil {
		return Outcome{}, err
	}
	prove := r.prove
	if !ask.Expires.IsZero() {
		prove = r.outlive
	}
	err = prove(ctx)
	return r.outcome(err == nil), err
}

// CheckTarget refuses a target that names nobody, as Run does.
func CheckTarget(t messages.Target) error {
	if err := checkTarget(t); err != nil {
		return fmt.Errorf("evict: %w", err)
	}
	return nil
}

// begin checks what is asked and makes a run of it.
func begin(ports Ports, ask Ask, tell func(Progress)) (*run, error) {
	if err := ask.check(); err != nil {
		return nil, fmt.Errorf("evict: %w", err)
	}
	if tell == nil {
		tell = func(Progress) {}
	}
	ask.Targets = slices.Clone(ask.Targets) // others may join
	r := &run{ports: ports, ask: ask.withDefaults(time.Now()), tell: tell, known: map[string]bool{},
		found: map[messages.ConnectionRef]messages.LiveConnection{}, dropped: map[messages.ConnectionRef]bool{}, notes: map[messages.ConnectionRef]string{}}
	for _, name := range ask.Known {
		r.known[name] = true
	}
	return r, nil
}

// run is one eviction.
type run struct {
	ports Ports
	ask   Ask
	tell  func(Progress)
	// openUntil is until when the run may wait for who joins; zero until it could go on
	// without.
	openUntil time.Time

	// known are the names of the servers met, before and now.
	known map[string]bool
	// awaited are the runs of servers whose late decisions are over, by id.
	awaited  map[string]bool
	meetings int

	// found are the connections met, dropped those that a server says it dropped, and
	// notes what servers said that would not.
	found   map[messages.ConnectionRef]messages.LiveConnection
	dropped map[messages.ConnectionRef]bool
	notes   map[messages.ConnectionRef]string

	doubtful, busy int
	// blind says that some sweep did not see everything.
	blind    bool
	last     messages.Swept
	eviction messages.Eviction
}

// prove sweeps until two sweeps on end, by servers whose late decisions are over, show
// nobody and leave no doubt.
func (r *run) prove(ctx context.Context) error {
	if err := r.meet(ctx); err != nil {
		return err
	}
	for clean := 0; ; {
		swept, err := r.sweep(ctx)
		if err != nil {
			return err
		}
		switch {
		case len(swept.Connections) > 0 || len(swept.Doubts) > 0:
			clean = 0
			if err := r.giveUp(swept); err != nil {
				return err
			}
		case !r.allAwaited(swept.Servers):
			clean = 0
			if err := r.meet(ctx); err != nil {
				return err
			}
		default:
			clean++
		}
		if clean == 2 {
			r.eviction = messages.EvictionSwept
			return nil
		}
		if err := pause(ctx, gap); err != nil {
			return err
		}
	}
}

// meet learns who the servers are, and waits until none of them lets anybody in any
// more on a decision from before the freeze.
func (r *run) meet(ctx context.Context) error {
	if r.meetings++; r.meetings > maxMeetings {
		return &Unproved{Doubts: []string{"new servers keep turning up"}}
	}
	r.tell(r.progress("asks who the servers are"))
	roster, err := r.ports.Servers.Observe(ctx, r.names())
	if err != nil {
		return fmt.Errorf("evict: observe the servers: %w", err)
	}
	for _, s := range roster.Servers {
		r.known[s.Name] = true
	}
	if err := r.await(ctx, roster); err != nil {
		return err
	}
	r.awaited = map[string]bool{}
	for _, s := range roster.Servers {
		r.awaited[s.ID] = s.Answered
	}
	return nil
}

// allAwaited reports whether nobody listed connections but servers that were met.
func (r *run) allAwaited(servers []messages.SweptServer) bool {
	return !slices.ContainsFunc(servers, func(s messages.SweptServer) bool { return !r.awaited[s.ID] })
}

// sweep looks for the targets' connections and has those that it finds dropped.
func (r *run) sweep(ctx context.Context) (messages.Swept, error) {
	swept, err := r.look(ctx)
	if err != nil {
		return messages.Swept{}, err
	}
	return swept, r.drop(ctx, swept.Connections)
}

// look looks for the targets' connections.
func (r *run) look(ctx context.Context) (messages.Swept, error) {
	r.tell(r.progress("looks for connections"))
	swept, err := r.ports.Servers.Sweep(ctx, messages.SweepConnections{Account: r.ask.Account, Known: r.names(), Targets: r.ask.Targets})
	r.last = swept
	r.blind = r.blind || err != nil || len(swept.Doubts) > 0
	if err != nil {
		return messages.Swept{}, fmt.Errorf("evict: sweep %s: %w", r.ask.Account, err)
	}
	for _, s := range swept.Servers {
		r.known[s.Name] = true
	}
	for _, c := range swept.Connections {
		r.found[c.ConnectionRef] = c
	}
	return swept, nil
}

// drop has connections dropped, all in one go. What becomes of each is only noted: the
// next sweep tells.
func (r *run) drop(ctx context.Context, connections []messages.LiveConnection) error {
	if len(connections) == 0 {
		return nil
	}
	r.tell(r.progress("drops connections"))
	refs := make([]messages.ConnectionRef, len(connections))
	for i, c := range connections {
		refs[i] = c.ConnectionRef
	}
	results, err := r.ports.Servers.Kick(ctx, refs)
	if err != nil {
		return fmt.Errorf("evict: drop %d connections: %w", len(refs), err)
	}
	for _, result := range results {
		switch result.Outcome {
		case messages.KickDone:
			r.dropped[result.ConnectionRef] = true
		case messages.KickRefused:
			r.notes[result.ConnectionRef] = result.Note
		}
	}
	return nil
}

// giveUp counts a sweep that proves nothing, says why, and ends the try when there
// were too many of its kind.
func (r *run) giveUp(swept messages.Swept) error {
	limit, count := maxBusy, &r.busy
	if len(swept.Doubts) > 0 {
		limit, count = maxDoubtful, &r.doubtful
	}
	*count++
	why := r.unproved(swept)
	p := r.progress("looks for connections")
	p.WaitingFor, p.Next = why.Error(), why.Next()
	r.tell(p)
	if *count >= limit {
		return why
	}
	return nil
}

// names of the servers met, sorted.
func (r *run) names() []string { return slices.Sorted(maps.Keys(r.known)) }

func (r *run) progress(doing string) Progress {
	return Progress{Doing: doing, Done: len(r.dropped), Total: len(r.found)}
}

func (r *run) outcome(proved bool) Outcome {
	out := Outcome{Met: len(r.found), Evicted: len(r.dropped), seen: slices.Collect(maps.Values(r.found)), dropped: r.dropped, blind: r.blind}
	for _, name := range r.names() {
		if !slices.Contains(r.ask.Known, name) {
			out.Learnt = append(out.Learnt, name)
		}
	}
	if !proved {
		return out
	}
	out.Eviction = r.eviction
	out.Vacuous = len(r.found) == 0 && !r.blind
	for _, s := range r.last.Servers {
		if s.Whole {
			out.Servers = append(out.Servers, s.Name)
		}
	}
	slices.Sort(out.Servers)
	return out
}

// pause waits for d.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func ended(ctx context.Context) error { return fmt.Errorf("evict: %w", context.Cause(ctx)) }
