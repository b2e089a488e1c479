package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/footprint"
	"github.com/cotal-ai/authplane/messages"
)

const (
	api = "$JS.API."
	// answerWithin is how long one answer of the servers is waited for.
	answerWithin = 5 * time.Second
	// mark is where a part says which incarnation it was made for: in a consumer's
	// metadata, and in a row's headers.
	mark = "Cotal-Incarnation"
)

// Codes of the servers' answers.
const (
	codeNotAvailable  = 10008 // no leader
	codeNotLeader     = 10009
	codeNoConsumer    = 10014
	codeNoStream      = 10059
	codeWrongRevision = 10071
)

// site is the account of the principals over one connection, for one incarnation.
type site struct {
	nc  *nats.Conn
	uid string
}

// refusal is how a server says no.
type refusal struct {
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

func (r *refusal) Error() string { return r.Description }

type answer struct {
	Refusal *refusal `json:"error"`
}

func (a answer) refused() *refusal { return a.Refusal }

// ask asks a server. A refusal is a *refusal; no answer and no leader is
// messages.BrokerAway.
func (s site) ask(ctx context.Context, m *nats.Msg, into interface{ refused() *refusal }) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	reply, err := s.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return messages.BrokerAway.From(err)
	}
	if err := json.Unmarshal(reply.Data, into); err != nil {
		return messages.BrokerAway.From(err)
	}
	switch no := into.refused(); {
	case no == nil:
		return nil
	case no.Code == codeNotAvailable, no.Code == codeNotLeader:
		return messages.BrokerAway.From(no)
	default:
		return no
	}
}

func saidNo(err error, codes ...int) bool {
	var no *refusal
	return errors.As(err, &no) && slices.Contains(codes, no.Code)
}

// refused makes a server's no the caller's.
func refused(what string, err error) error {
	var no *refusal
	if errors.As(err, &no) {
		return messages.FootprintRefused.Because("%s: %s", what, no.Description)
	}
	return err
}

// consumer is what a server says of one.
type consumer struct {
	answer
	Config jetstream.ConsumerConfig `json:"config"`
}

func (s site) info(ctx context.Context, c messages.FootprintConsumer) (found consumer, err error) {
	err = s.ask(ctx, nats.NewMsg(api+"CONSUMER.INFO."+c.Stream+"."+c.Name), &found)
	return found, err
}

// Consumer and the rest are footprint.Site.
func (s site) Consumer(ctx context.Context, c messages.FootprintConsumer) (footprint.Presence, error) {
	found, err := s.info(ctx, c)
	switch {
	case saidNo(err, codeNoConsumer):
		return footprint.Absent, nil
	case err != nil:
		return 0, refused("consumer "+c.Name+" of "+c.Stream, err)
	case found.Config.Metadata[mark] == s.uid:
		return footprint.Ours, nil
	case alike(found.Config, configOf(c)):
		return footprint.Alike, nil
	}
	return footprint.Other, nil
}

func (s site) MakeConsumer(ctx context.Context, c messages.FootprintConsumer) error {
	config := configOf(c)
	config.Metadata = map[string]string{mark: s.uid}
	body, err := json.Marshal(struct {
		Stream string                   `json:"stream_name"`
		Config jetstream.ConsumerConfig `json:"config"`
		Action string                   `json:"action"`
	}{c.Stream, config, "create"})
	if err != nil {
		return messages.InternalFault.From(err)
	}
	m := nats.NewMsg(api + "CONSUMER.CREATE." + c.Stream + "." + c.Name)
	if len(c.Filters) == 1 {
		m.Subject += "." + c.Filters[0]
	}
	m.Data = body
	var made consumer
	err = s.ask(ctx, m, &made)
	if no := (*refusal)(nil); !errors.As(err, &no) {
		return err
	}
	there, looked := s.Consumer(ctx, c)
	switch {
	case looked != nil:
		return looked
	case there == footprint.Ours:
		return nil
	case there == footprint.Absent:
		return refused("consumer "+c.Name+" of "+c.Stream, err)
	}
	return footprint.ErrOther
}

func (s site) RemoveConsumer(ctx context.Context, c messages.FootprintConsumer, made bool) error {
	found, err := s.info(ctx, c)
	if err == nil && !made && found.Config.Metadata[mark] != s.uid {
		return nil
	}
	if err == nil {
		var gone answer
		err = s.ask(ctx, nats.NewMsg(api+"CONSUMER.DELETE."+c.Stream+"."+c.Name), &gone)
	}
	if saidNo(err, codeNoConsumer, codeNoStream) {
		return nil
	}
	return refused("consumer "+c.Name+" of "+c.Stream, err)
}

func configOf(c messages.FootprintConsumer) jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{Name: c.Name, Durable: c.Name, AckWait: c.AckWait, MaxDeliver: c.MaxDeliver, MaxAckPending: c.MaxAckPending}
	if len(c.Filters) == 1 {
		config.FilterSubject = c.Filters[0]
	} else {
		config.FilterSubjects = c.Filters
	}
	switch c.Ack {
	case "all":
		config.AckPolicy = jetstream.AckAllPolicy
	case "none":
		config.AckPolicy = jetstream.AckNonePolicy
	default:
		config.AckPolicy = jetstream.AckExplicitPolicy
	}
	switch c.Deliver {
	case "new":
		config.DeliverPolicy = jetstream.DeliverNewPolicy
	case "last":
		config.DeliverPolicy = jetstream.DeliverLastPolicy
	}
	return config
}

// alike reports whether what stands is a durable pull consumer as it has to be. What is
// left to the server is not compared.
func alike(there, want jetstream.ConsumerConfig) bool {
	most := want.MaxDeliver
	if most == 0 {
		most = -1
	}
	return there.Durable == want.Durable && there.DeliverSubject == "" && there.InactiveThreshold == 0 &&
		there.AckPolicy == want.AckPolicy && there.DeliverPolicy == want.DeliverPolicy && there.MaxDeliver == most &&
		(want.AckWait == 0 || there.AckWait == want.AckWait) && (want.MaxAckPending == 0 || there.MaxAckPending == want.MaxAckPending) &&
		slices.Equal(filters(there), filters(want))
}

func filters(c jetstream.ConsumerConfig) []string {
	all := slices.Clone(c.FilterSubjects)
	if c.FilterSubject != "" {
		all = append(all, c.FilterSubject)
	}
	slices.Sort(all)
	return all
}
