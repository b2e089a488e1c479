package face

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cotal-ai/authplane/messages"
)

// taken takes one field of each type, as a handler does.
func taken(in *input) (string, int64, bool, []string, error) {
	s, n, b, l := in.text("s"), in.integer("n", 1, 900, 7), in.flag("b"), in.texts("l")
	return s, n, b, l, in.done()
}

func TestClosedJSON(t *testing.T) {
	s, n, b, l := "", int64(0), false, []string(nil)
	in, err := readJSON([]byte(` {"s":"a\u00e9","n":900,"b":true,"l":["x",""]} ` + "\n"))
	if err == nil {
		s, n, b, l, err = taken(in)
	}
	if err != nil || s != "aé" || n != 900 || !b || !slices.Equal(l, []string{"x", ""}) {
		t.Fatalf("got %q %d %v %q, %v", s, n, b, l, err)
	}
	in, err = readJSON([]byte(`{}`))
	if err == nil {
		s, n, b, l, err = taken(in)
	}
	if err != nil || s != "" || n != 7 || b || l == nil || len(l) != 0 {
		t.Fatalf("nothing became %q %d %v %q, %v", s, n, b, l, err)
	}
}

func TestRefusedJSON(t *testing.T) {
	for _, body := range []string{
		``, ` `, `null`, `[]`, `"x"`, `1`, `{`, `}`, `{"s"}`, `{"s":}`, `{"s":"x"`, `{"s":"x",}`, `{s:"x"}`, `{"s":"x"} x`,
		`{"s":"x"}{}`, `{"s":"x"}null`, "{\"s\":\"x\"}\x00", "{\"s\":\"\xff\"}", "\xef\xbb\xbf{}",
		`{"s":"x","s":"x"}`, `{"s":"x","\u0073":"y"}`, `{"x":1}`, `{"S":"x"}`, `{"s":null}`, `{"s":1}`, `{"s":["x"]}`, `{"s":{}}`,
		`{"n":"1"}`, `{"n":null}`, `{"n":1.0}`, `{"n":1e1}`, `{"n":1E1}`, `{"n":-0}`, `{"n":0}`, `{"n":-1}`, `{"n":901}`, `{"n":01}`,
		`{"n":99999999999999999999}`, `{"n":true}`, `{"n":NaN}`, `{"n":Infinity}`,
		`{"b":"true"}`, `{"b":1}`, `{"b":null}`, `{"l":"x"}`, `{"l":[1]}`, `{"l":[null]}`, `{"l":null}`, `{"l":[["x"]]}`, `{"l":{"x":1}}`,
		`{"s":` + strings.Repeat("[", 20_000) + `}`,
	} {
		in, err := readJSON([]byte(body))
		if err == nil {
			_, _, _, _, err = taken(in)
		}
		if !errors.Is(err, messages.Malformed) {
			t.Errorf("%.60s: got %v, want %v", body, err, messages.Malformed)
		}
	}
}

func TestForms(t *testing.T) {
	in, err := readForm([]byte("s=a+%C3%A9&n=60&b=true"))
	if err != nil {
		t.Fatal(err)
	}
	if s, n, b, _, err := taken(in); err != nil || s != "a é" || n != 60 || !b {
		t.Fatalf("got %q %d %v, %v", s, n, b, err)
	}
	for _, body := range []string{"s=1&s=2", "s=%zz", "s=%ff", "%ff=1", "n=+1", "n=1.0", "n=", "b=yes", "x=1", "l=a", "s=a;n=1", "\xff=1"} {
		in, err := readForm([]byte(body))
		if err == nil {
			_, _, _, _, err = taken(in)
		}
		if !errors.Is(err, messages.Malformed) {
			t.Errorf("%q: got %v, want %v", body, err, messages.Malformed)
		}
	}
}

// What is accepted means the same to a reader that is known to be right, and the
// text of a refusal never grows with the input.
func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{`{"s":"x","n":1,"b":true,"l":["a"]}`, `{"n":1e2}`, `{"s":"x","s":"y"}`, `{"s":"\ud800"}`, `{} {}`, `{"é":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := readJSON(body)
		var s string
		var n int64
		var l []string
		if err == nil {
			s, n, _, l, err = taken(in)
		}
		if err != nil {
			if text := messages.PublicText(err); !errors.Is(err, messages.Malformed) || len(text) > 400 {
				t.Fatalf("%q: refused with %q", body, text)
			}
			return
		}
		var known struct {
			S string   `json:"s"`
			N *int64   `json:"n"`
			B bool     `json:"b"`
			L []string `json:"l"`
		}
		if err := json.Unmarshal(body, &known); err != nil {
			t.Fatalf("%q: accepted, but it is not JSON: %v", body, err)
		}
		if s != known.S || known.N != nil && n != *known.N || !slices.Equal(l, append([]string{}, known.L...)) || n < 1 || n > 900 {
			t.Fatalf("%q became %q %d %q", body, s, n, l)
		}
	})
}

func FuzzReadForm(f *testing.F) {
	for _, seed := range []string{"s=a&n=1", "s=%41", "s=1&s=2", "s=%ff", "=", "&&", "s=a;n=1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := readForm(body)
		var s string
		if err == nil {
			s, _, _, _, err = taken(in)
		}
		if err != nil {
			if text := messages.PublicText(err); !errors.Is(err, messages.Malformed) || len(text) > 400 {
				t.Fatalf("%q: refused with %q", body, text)
			}
			return
		}
		known, err := url.ParseQuery(string(body))
		if err != nil || known.Get("s") != s {
			t.Fatalf("%q became %q", body, s)
		}
	})
}
