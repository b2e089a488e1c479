package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// readAtOnce bounds the reads of one listing that are under way together: enough
// to hide the way to the leader, few enough to leave it to others.
const readAtOnce = 32

// Reader answers what a decision needs to know. It is safe for concurrent use.
type Reader struct {
	source Source
	now    func() time.Time
}

// NewReader reads from source: a Store, or one that insists on proof. now is the
// clock that stamps answers; nil is the system's.
func NewReader(source Source, now func() time.Time) *Reader {
	if now == nil {
		now = time.Now
	}
	return &Reader{source: source, now: now}
}

// Authority reads a principal's head, if asked for, its grant and the grants of
// its parents. Each is one read of the leader, begun after the call; together they
// are no snapshot, which is why a decision compares their uids. A failed read
// fails the whole, with messages.Unproved, BrokerAway or RowCorrupt.
func (r *Reader) Authority(ctx context.Context, ask messages.ReadAuthority) (messages.Authority, error) {
	if err := names.CheckPrincipal(ask.Principal); err != nil {
		return messages.Authority{}, err
	}
	answer := messages.Authority{ReadAt: r.now()}
	headCtx, dropHead := context.WithCancel(ctx)
	defer dropHead()
	var heading sync.WaitGroup
	var headErr error
	if ask.Head {
		heading.Go(func() { answer.Head, answer.HasHead, headErr = readHead(headCtx, r.source, ask.Principal) })
	}
	// The grant is read here and not beside: most of what this costs is the goroutine.
	var err error
	answer.Grant, answer.HasGrant, err = readGrant(ctx, r.source, ask.Principal)
	if err == nil {
		answer.Chain, err = readChain(ctx, r.source, answer.Grant)
	}
	if err != nil {
		dropHead()
	}
	heading.Wait()
	if err = cmp.Or(err, headErr); err != nil {
		return messages.Authority{}, err
	}
	return answer, nil
}

// Grants reads every grant, revoked ones too. Rows that are corrupt keep nobody from
// the others: they are named.
func (r *Reader) Grants(ctx context.Context) (messages.Grants, error) {
	found, unreadable, err := listGrants(ctx, r.source, allGrants)
	return messages.Grants{Items: found, Unreadable: CorruptKeys(unreadable)}, err
}

// Instance reads the gate of a service's instance. Refused with
// messages.InstanceNotFound, and as Authority is.
func (r *Reader) Instance(ctx context.Context, ask messages.ReadInstance) (messages.Instance, error) {
	if err := CheckInstance(ask.Endpoint, ask.Instance); err != nil {
		return messages.Instance{}, err
	}
	row, found, err := r.source.Get(ctx, InstanceKey(ask.Endpoint, ask.Instance))
	switch {
	case err != nil:
		return messages.Instance{}, err
	case !found:
		return messages.Instance{}, messages.InstanceNotFound
	}
	return DecodeInstance(row)
}

// Instances reads the gates of an endpoint's instances, or of all. Rows that are
// corrupt keep nobody from the others: they are named.
func (r *Reader) Instances(ctx context.Context, ask messages.ListInstances) (messages.Instances, error) {
	filter := AllInstances
	if ask.Endpoint != "" {
		if !isToken(ask.Endpoint) {
			return messages.Instances{}, messages.Malformed.Because("an endpoint is one token of [A-Za-z0-9_-]")
		}
		filter = InstancesOf(ask.Endpoint)
	}
	keys, err := r.source.List(ctx, filter)
	if err != nil {
		return messages.Instances{}, err
	}
	found, unreadable, err := readEach(ctx, r.source, keys, DecodeInstance)
	if err != nil {
		return messages.Instances{}, err
	}
	slices.SortFunc(found, func(a, b messages.Instance) int {
		return cmp.Or(strings.Compare(a.Endpoint, b.Endpoint), strings.Compare(a.Name, b.Name))
	})
	return messages.Instances{Items: found, Unreadable: CorruptKeys(unreadable)}, nil
}

// listGrants reads the grants that match, sorted by owner, then actor. What it says
// of the rows that are corrupt is unreadable, and no failure of the list.
func listGrants(ctx context.Context, source Source, filter string) (found []messages.Grant, unreadable, err error) {
	keys, err := source.List(ctx, filter)
	if err != nil {
		return nil, nil, err
	}
	read := make([]messages.Grant, len(keys))
	damage := make([]error, len(keys))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(readAtOnce)
	for i, key := range keys {
		reads.Go(func() error {
			row, err := mustGet(ctx, source, key)
			if err == nil {
				read[i], err = DecodeGrant(row)
			}
			if errors.Is(err, messages.RowCorrupt) {
				damage[i], err = err, nil
			}
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, nil, err
	}
	for i, grant := range read {
		if damage[i] == nil {
			found = append(found, grant)
		}
	}
	slices.SortFunc(found, func(a, b messages.Grant) int {
		if by := strings.Compare(a.Principal.Owner, b.Principal.Owner); by != 0 {
			return by
		}
		return strings.Compare(a.Principal.Actor, b.Principal.Actor)
	})
	return found, errors.Join(damage...), nil
}

// mustGet reads a row that was listed. Rows are never removed, so its absence
// comes from a leader that lags.
func mustGet(ctx context.Context, source Source, key string) (Row, error) {
	row, found, err := source.Get(ctx, key)
	if err == nil && !found {
		err = messages.Unproved.Because("%s was listed and is not there", key)
	}
	return row, err
}

func readHead(ctx context.Context, source Source, p messages.Principal) (messages.Head, bool, error) {
	row, found, err := source.Get(ctx, HeadKey(p))
	if err != nil || !found {
		return messages.Head{}, false, err
	}
	head, err := DecodeHead(row)
	return head, err == nil, err
}

func readGrant(ctx context.Context, source Source, p messages.Principal) (messages.Grant, bool, error) {
	row, found, err := source.Get(ctx, GrantKey(p))
	if err != nil || !found {
		return messages.Grant{}, false, err
	}
	grant, err := DecodeGrant(row)
	return grant, err == nil, err
}

// readChain reads the grants above one, nearest first. It ends early where the
// chain does not hold: at a parent that is missing or was met before, and at
// grants.MaxDepth. The check of the chain is what refuses such an end.
func readChain(ctx context.Context, source Source, of messages.Grant) ([]messages.Grant, error) {
	var chain []messages.Grant
	met := map[messages.Principal]bool{of.Principal: true}
	for next := of.Parent; !next.IsZero() && !met[next] && len(chain) < grants.MaxDepth; {
		parent, found, err := readGrant(ctx, source, next)
		if err != nil || !found {
			return chain, err
		}
		met[next] = true
		chain = append(chain, parent)
		next = parent.Parent
	}
	return chain, nil
}
