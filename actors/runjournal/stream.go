package runjournal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/messages"
)

const (
	// maxMessage is the size of one message of the stream, in bytes, its headers included.
	maxMessage = 256 << 10
	// MaxRecord is the size of one record, in bytes.
	MaxRecord = maxMessage - 1<<10
)

// readyIn is how long a server is given that does not answer for an account yet.
const readyIn = 50 * time.Millisecond

// StreamName is the stream of a space's journals, in its account DATA.
func StreamName(space string) string { return "cotal_runs_" + space }

// Subject is where the journal of a run stands.
func Subject(space, run string) string { return "cotal." + space + ".run." + run }

// CheckRun refuses what cannot name a run: `run-` and 32 characters of [0-9a-f].
func CheckRun(run string) error {
	digits, named := strings.CutPrefix(run, "run-")
	if !named || len(digits) != 32 || strings.Trim(digits, "0123456789abcdef") != "" {
		return messages.Malformed.Because("a run is named run- and 32 characters of [0-9a-f]")
	}
	return nil
}

// StreamConfig is the stream as it must be: it keeps everything, in order, for ever.
func StreamConfig(space string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: StreamName(space), Subjects: []string{Subject(space, "*")},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: maxMessage, MaxConsumers: -1,
		Duplicates: 2 * time.Minute, Replicas: replicas, DenyDelete: true, DenyPurge: true,
	}
}

// OpenStream makes the stream where it is missing, and refuses one of another shape with
// messages.StreamDrifted; it alters none. It takes the right to make the stream and to
// ask about it. The authority does it itself when it issues to a run's driver.
func OpenStream(ctx context.Context, js jetstream.JetStream, space string, replicas int) error {
	want := StreamConfig(space, replicas)
	stream, err := open(ctx, js, want)
	for deadline := time.Now().Add(answerWithin); errors.Is(err, nats.ErrNoResponders) && time.Now().Before(deadline); {
		select { // a server that has just heard of the account is not ready yet
		case <-time.After(readyIn):
			stream, err = open(ctx, js, want)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return messages.BrokerAway.From(fmt.Errorf("open %s: %w", want.Name, err))
	}
	return checkShape(stream.CachedInfo().Config, want)
}

func open(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if stream, err = js.CreateStream(ctx, want); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			stream, err = js.Stream(ctx, want.Name) // another was first
		}
	}
	return stream, err
}

func checkShape(is, want jetstream.StreamConfig) error {
	drifted := map[string]bool{
		"subjects":        !slices.Equal(is.Subjects, want.Subjects) || is.SubjectTransform != nil,
		"retention":       is.Retention != want.Retention || is.MaxAge != 0 || is.AllowMsgTTL || is.SubjectDeleteMarkerTTL != 0,
		"storage":         is.Storage != want.Storage || is.Replicas != want.Replicas,
		"limits":          is.MaxMsgs > 0 || is.MaxBytes > 0 || is.MaxMsgsPerSubject > 0 || is.Discard != want.Discard,
		"deletion":        !is.DenyDelete || !is.DenyPurge || is.AllowRollup || is.Sealed,
		"other streams":   is.Mirror != nil || len(is.Sources) > 0 || is.RePublish != nil,
		"counter, no-ack": is.AllowMsgCounter || is.NoAck,
	}
	var fields []string
	for field, is := range drifted {
		if is {
			fields = append(fields, field)
		}
	}
	if len(fields) > 0 {
		slices.Sort(fields)
		return messages.StreamDrifted.Because("%s: %s", want.Name, strings.Join(fields, ", "))
	}
	return nil
}
