package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Installation tells one life of the stream from another that was made under the
// same name. Its owner keeps it in the state directory.
type Installation struct {
	// InstallID stands in the stream's metadata.
	InstallID string `json:"installId"`
	// Created is when the server made the stream; zero before it was first met.
	Created time.Time `json:"created"`
}

// Open binds to the stream and proves it, and returns the installation to remember.
// What was remembered decides what is done:
//
//   - nothing, or an InstallID alone: the first start. A stream that is not there is
//     created, with that id or a minted one; one that is there is taken for ours if it
//     bears that id, or if none was given.
//   - both: the very stream must be there. One that is gone, or is another, is
//     messages.StreamForeign.
//
// A stream of another shape is messages.StreamDrifted; it is never altered. Without
// an answer it is messages.BrokerAway.
func Open(ctx context.Context, conn *nats.Conn, cfg Config, remembered Installation) (Installation, error) {
	if err := cfg.Check(); err != nil {
		return Installation{}, err
	}
	c := client{conn: conn, cfg: cfg}
	met, err := c.prove(ctx, remembered)
	if !errors.Is(err, errAbsent) || !remembered.Created.IsZero() {
		return met, err
	}
	if remembered.InstallID == "" {
		remembered.InstallID = names.NewUID()
		met, err := c.make(ctx, remembered.InstallID)
		if refusedWith(err, codeNameInUse) { // another process was first; its id is as good
			return c.prove(ctx, Installation{})
		}
		return met, err
	}
	met, err = c.make(ctx, remembered.InstallID)
	if refusedWith(err, codeNameInUse) {
		return c.prove(ctx, remembered)
	}
	return met, err
}

// Prove proves again, on conn, that the stream is the remembered one and has its
// shape. It fails like Open, and creates nothing.
func Prove(ctx context.Context, conn *nats.Conn, cfg Config, remembered Installation) error {
	_, err := client{conn: conn, cfg: cfg}.prove(ctx, remembered)
	return err
}

// errAbsent is a stream that is not there.
var errAbsent = errors.New("there is no stream")

// make creates the stream and proves what came of it.
func (c client) make(ctx context.Context, installID string) (Installation, error) {
	js, err := jetstream.New(c.conn)
	if err != nil {
		return Installation{}, messages.InternalFault.From(err)
	}
	bounded, cancel := context.WithTimeout(ctx, c.cfg.timeout())
	defer cancel()
	_, err = js.CreateStream(bounded, c.cfg.shape(installID))
	var refused *jetstream.APIError
	switch {
	case err == nil:
		return c.prove(ctx, Installation{InstallID: installID})
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
		return Installation{}, &apiError{Code: codeNameInUse, Description: "the stream is there already"}
	case errors.As(err, &refused) && refused.Code != statusUnavailable:
		return Installation{}, fmt.Errorf("create %s: %w", c.cfg.Name(), err)
	default:
		return Installation{}, messages.BrokerAway.From(err)
	}
}

// info is what STREAM.INFO says of a stream.
type info struct {
	envelope
	Created time.Time                  `json:"created"`
	Config  map[string]json.RawMessage `json:"config"`
}

// prove reads the stream and refuses another than remembered, or another shape.
func (c client) prove(ctx context.Context, remembered Installation) (Installation, error) {
	var answer info
	err := c.ask(ctx, "STREAM.INFO", struct{}{}, &answer)
	switch {
	case refusedWith(err, codeNoStream):
		return Installation{}, messages.StreamForeign.From(errAbsent)
	case err != nil:
		return Installation{}, fmt.Errorf("prove %s: %w", c.cfg.Name(), err)
	}
	met, err := c.cfg.identify(answer)
	if err != nil {
		return Installation{}, err
	}
	if remembered.InstallID != "" && remembered.InstallID != met.InstallID {
		return Installation{}, messages.StreamForeign.Because("%s belongs to another installation", c.cfg.Name())
	}
	if !remembered.Created.IsZero() && !remembered.Created.Equal(met.Created) {
		return Installation{}, messages.StreamForeign.Because("%s was made anew", c.cfg.Name())
	}
	return met, c.cfg.checkShape(answer.Config)
}

// identify reads whose the stream is. Metadata of anybody but us and the server is drift.
func (c Config) identify(answer info) (Installation, error) {
	var metadata map[string]string
	if raw, found := answer.Config["metadata"]; found {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return Installation{}, messages.StreamDrifted.Because("%s: metadata", c.Name())
		}
	}
	met := Installation{InstallID: metadata[metadataInstall], Created: answer.Created.UTC()}
	if names.CheckUID(met.InstallID) != nil {
		return Installation{}, messages.StreamForeign.Because("%s was not made by us", c.Name())
	}
	for key := range metadata {
		if key != metadataInstall && !strings.HasPrefix(key, metadataServer) {
			return Installation{}, messages.StreamDrifted.Because("%s: metadata", c.Name())
		}
	}
	return met, nil
}
