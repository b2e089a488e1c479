package stream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// admin is somebody with more rights than he should have.
type admin struct {
	*testing.T
	conn *nats.Conn
}

// api asks the JetStream API and reports its refusal.
func (a admin) api(verb string, body any) (map[string]any, error) {
	a.Helper()
	var request []byte
	if body != nil {
		var err error
		if request, err = json.Marshal(body); err != nil {
			a.Fatal(err)
		}
	}
	reply, err := a.conn.Request("$JS.API."+verb, request, patience)
	if err != nil {
		a.Fatal(err)
	}
	answer := map[string]any{}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		a.Fatal(err)
	}
	if refusal, found := answer["error"]; found {
		return nil, fmt.Errorf("refused: %v", refusal)
	}
	return answer, nil
}

func (a admin) mustAPI(verb string, body any) map[string]any {
	a.Helper()
	answer, err := a.api(verb, body)
	if err != nil {
		a.Fatal(err)
	}
	return answer
}

// config is the stream's configuration as the server shows it.
func (a admin) config(cfg stream.Config) map[string]any {
	a.Helper()
	return a.mustAPI("STREAM.INFO."+cfg.Name(), nil)["config"].(map[string]any)
}

// elsewhere makes the stream that some alterations copy from.
func (a admin) elsewhere() {
	a.Helper()
	a.mustAPI("STREAM.CREATE.elsewhere", map[string]any{"name": "elsewhere", "subjects": []string{"elsewhere.>"}})
}

// copying waits until the server copies what it was told to, if anything: while it
// tries to begin, something of it would outlive its own shutdown.
func (a admin) copying(cfg stream.Config) {
	a.Helper()
	eventually(a, "the server copies", func() error {
		info := a.mustAPI("STREAM.INFO."+cfg.Name(), nil)
		from, _ := info["sources"].([]any)
		if mirror, found := info["mirror"]; found {
			from = append(from, mirror)
		}
		for _, f := range from {
			if f.(map[string]any)["active"] == -1.0 {
				return errors.New("it has not begun")
			}
		}
		return nil
	})
}

// alterations are changes of one field each; some drag another along because the
// server asks for it.
func alterations(cfg stream.Config) map[string]map[string]any {
	const day = 24 * time.Hour
	return map[string]map[string]any{
		"max_age":               {"max_age": day},
		"mirror":                {"mirror": map[string]any{"name": "elsewhere"}, "subjects": nil, "allow_atomic": false},
		"sources":               {"sources": []map[string]any{{"name": "elsewhere"}}},
		"allow_direct":          {"allow_direct": true},
		"mirror_direct":         {"mirror_direct": true, "mirror": map[string]any{"name": "elsewhere"}, "subjects": nil, "allow_atomic": false},
		"work queue":            {"retention": "workqueue"},
		"interest":              {"retention": "interest"},
		"max_msgs":              {"max_msgs": 100},
		"max_bytes":             {"max_bytes": 1 << 20},
		"max_msg_size":          {"max_msg_size": 1 << 20},
		"max_consumers":         {"max_consumers": 10},
		"history":               {"max_msgs_per_subject": 5},
		"unlimited history":     {"max_msgs_per_subject": -1},
		"message ttl":           {"allow_msg_ttl": true},
		"delete marker ttl":     {"allow_msg_ttl": true, "subject_delete_marker_ttl": time.Hour, "deny_purge": false, "allow_rollup_hdrs": true},
		"memory":                {"storage": "memory"},
		"rollup":                {"allow_rollup_hdrs": true, "deny_purge": false},
		"deny_delete":           {"deny_delete": false},
		"deny_purge":            {"deny_purge": false},
		"no republish":          {"republish": nil},
		"republish elsewhere":   {"republish": map[string]any{"src": cfg.Subject(">"), "dest": "mine.>", "headers_only": true}},
		"republish whole rows":  {"republish": map[string]any{"src": cfg.Subject(">"), "dest": cfg.Changed(">")}},
		"subject transform":     {"subject_transform": map[string]any{"src": cfg.Subject("a.*"), "dest": cfg.Subject("b.{{wildcard(1)}}")}},
		"discard old":           {"discard": "old"},
		"discard new per key":   {"discard_new_per_subject": true},
		"another subject":       {"subjects": []string{cfg.Subject(">"), "extra.>"}},
		"narrower subject":      {"subjects": []string{cfg.Subject("a.>")}},
		"no atomic":             {"allow_atomic": false},
		"fast batches":          {"allow_batched": true},
		"counters":              {"allow_msg_counter": true, "discard": "old"},
		"schedules":             {"allow_msg_schedules": true, "discard": "old"},
		"compression":           {"compression": "s2"},
		"duplicate window":      {"duplicate_window": time.Minute},
		"no ack":                {"no_ack": true},
		"first sequence":        {"first_seq": 100},
		"description":           {"description": "mine"},
		"consumer limits":       {"consumer_limits": map[string]any{"max_ack_pending": 5}},
		"metadata of another's": {"metadata": map[string]any{"installId": "id", "mine": "x"}},
		"placement":             {"placement": map[string]any{"cluster": "c"}},
		"asynchronous":          {"persist_mode": "async", "allow_atomic": false},
	}
}

func TestEachAlterationIsRefused(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	a := admin{t, conn}
	a.elsewhere()
	good := config("good", 1)
	open(t, conn, good)
	n := 0
	for name, change := range alterations(config("x", 1)) {
		n++
		cfg := config(fmt.Sprintf("s%d", n), 1)
		change = alterations(cfg)[name]
		t.Run(name, func(t *testing.T) {
			a := admin{t, conn}
			altered := a.config(good)
			altered["name"], altered["subjects"] = cfg.Name(), []string{cfg.Subject(">")}
			altered["republish"] = map[string]any{"src": cfg.Subject(">"), "dest": cfg.Changed(">"), "headers_only": true}
			installID := names.NewUID()
			altered["metadata"] = map[string]any{"installId": installID}
			for field, value := range change {
				altered[field] = value
			}
			if own, found := altered["metadata"].(map[string]any); found {
				own["installId"] = installID
			}
			a.mustAPI("STREAM.CREATE."+cfg.Name(), altered)
			before := fmt.Sprint(a.config(cfg))
			_, err := stream.Open(t.Context(), conn, cfg, stream.Installation{InstallID: installID})
			if !errors.Is(err, messages.StreamDrifted) {
				t.Errorf("opened: %v", err)
			}
			if after := fmt.Sprint(a.config(cfg)); after != before {
				t.Errorf("altered back:\n%s\n%s", before, after)
			}
			a.copying(cfg)
		})
	}
}

func TestAlterationIsNoticedLater(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	admin{t, conn}.elsewhere()
	n := 0
	for name := range alterations(config("x", 1)) {
		n++
		cfg := config(fmt.Sprintf("s%d", n), 1)
		t.Run(name, func(t *testing.T) {
			a := admin{t, conn}
			met := open(t, conn, cfg)
			altered := a.config(cfg)
			for field, value := range alterations(cfg)[name] {
				altered[field] = value
			}
			if own, found := alterations(cfg)[name]["metadata"].(map[string]any); found {
				own["installId"] = met.InstallID
				altered["metadata"] = own
			}
			_, refused := a.api("STREAM.UPDATE."+cfg.Name(), altered)
			err := stream.Prove(t.Context(), conn, cfg, met)
			if refused != nil && err != nil { // the server has kept it from happening
				t.Errorf("nothing was altered (%v), and yet: %v", refused, err)
			}
			if refused == nil && !errors.Is(err, messages.StreamDrifted) {
				t.Errorf("proved: %v", err)
			}
			a.copying(cfg)
		})
	}
}

func TestReplicasAreProved(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	cfg := config("s", 1)
	met := open(t, conn, cfg)
	cfg.Replicas = 3
	if err := stream.Prove(t.Context(), conn, cfg, met); !errors.Is(err, messages.StreamDrifted) {
		t.Fatalf("one replica passes for three: %v", err)
	}
}

func TestInstallation(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	a := admin{t, conn}
	cfg := config("s", 1)
	ctx := t.Context()
	if err := stream.Prove(ctx, conn, cfg, stream.Installation{}); !errors.Is(err, messages.StreamForeign) {
		t.Fatalf("no stream: %v", err)
	}
	own := stream.Installation{InstallID: names.NewUID()}
	met, err := stream.Open(ctx, conn, cfg, own)
	if err != nil || met.InstallID != own.InstallID || met.Created.IsZero() {
		t.Fatalf("created: %+v, %v", met, err)
	}
	// A process that never met it: with the id, and without.
	for _, remembered := range []stream.Installation{met, own, {}} {
		if again, err := stream.Open(ctx, conn, cfg, remembered); err != nil || again != met {
			t.Fatalf("%+v: %+v, %v", remembered, again, err)
		}
	}
	foreign := stream.Installation{InstallID: names.NewUID()}
	if _, err := stream.Open(ctx, conn, cfg, foreign); !errors.Is(err, messages.StreamForeign) {
		t.Fatalf("another's: %v", err)
	}
	// Deleted, and then made again with the very same id.
	a.mustAPI("STREAM.DELETE."+cfg.Name(), nil)
	if _, err := stream.Open(ctx, conn, cfg, met); !errors.Is(err, messages.StreamForeign) {
		t.Fatalf("deleted: %v", err)
	}
	remade, err := stream.Open(ctx, conn, cfg, own)
	if err != nil || remade.Created.Equal(met.Created) {
		t.Fatalf("remade: %+v, %v", remade, err)
	}
	if err := stream.Prove(ctx, conn, cfg, met); !errors.Is(err, messages.StreamForeign) {
		t.Fatalf("remade passes: %v", err)
	}
	// Without an id of ours.
	plain := config("plain", 1)
	shaped := a.config(cfg)
	shaped["name"], shaped["subjects"], shaped["republish"], shaped["metadata"] = plain.Name(), []string{plain.Subject(">")}, nil, nil
	a.mustAPI("STREAM.CREATE."+plain.Name(), shaped)
	if _, err := stream.Open(ctx, conn, plain, stream.Installation{}); !errors.Is(err, messages.StreamForeign) {
		t.Fatalf("nobody's: %v", err)
	}
}

func TestOpenAtOnce(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	cfg := config("s", 1)
	const processes = 6
	met := make(chan stream.Installation, processes)
	for range processes {
		go func() {
			own, err := stream.Open(t.Context(), conn, cfg, stream.Installation{})
			if err != nil {
				t.Error(err)
			}
			met <- own
		}()
	}
	first := <-met
	for range processes - 1 {
		if next := <-met; next != first {
			t.Errorf("got %+v and %+v", first, next)
		}
	}
}

func TestBadConfig(t *testing.T) {
	good := config("s", 1)
	for name, spoil := range map[string]func(*stream.Config){
		"space": func(c *stream.Config) { c.Space = "a.b" }, "replicas": func(c *stream.Config) { c.Replicas = 2 },
		"instance": func(c *stream.Config) { c.Instance = "*" },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := stream.Open(t.Context(), nil, cfg, stream.Installation{}); !errors.Is(err, messages.Malformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNudge(t *testing.T) {
	conn := dial(t, startServer(t).ClientURL())
	s := subjects(conn, 1)(t)
	nudges, err := conn.SubscribeSync(config("s1", 1).Changed("head.*"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, "head.x", "secret")
	m, err := nudges.NextMsg(patience)
	if err != nil || len(m.Data) != 0 || m.Subject != "cotal.s1.changed.head.x" {
		t.Fatalf("got %+v, %v", m, err)
	}
}
