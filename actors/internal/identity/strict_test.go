package identity

import (
	"encoding/json"
	"maps"
	"testing"
)

// FuzzReadObject holds the reader against the standard decoder: whatever it
// accepts, it reads as that one does, and in the end it gives every member.
func FuzzReadObject(f *testing.F) {
	for _, seed := range []string{`{}`, ` { "a" : 1 , "b":[ {"c":"]}"} ] , "d":"\"}" } `, `{"a":{"b":[1,2,{"c":null}]},"\u0061b":-1.5e3}`, `{"a":1,"a":2}`, `[]`, `{"a":tru}`, `{"a":"\ud800"}`, `{,}`, `{"a":1,}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := map[string]string{}
		err := readObject([]byte(text), func(name string, value json.RawMessage) error {
			got[name] = string(value)
			return nil
		})
		var want map[string]json.RawMessage
		standard := json.Unmarshal([]byte(text), &want)
		if err != nil {
			return
		}
		if standard != nil {
			t.Fatalf("%q is read, though it is no object: %v", text, standard)
		}
		plain := map[string]string{}
		for name, value := range want {
			plain[name] = string(value)
		}
		if !maps.Equal(got, plain) {
			t.Fatalf("%q reads as %v, not %v", text, got, plain)
		}
	})
}

func TestReadObjectRefusals(t *testing.T) {
	for _, text := range []string{``, ` `, `null`, `[]`, `1`, `{`, `{}x`, `{}{}`, `{"a":1,}`, `{,}`, `{"a":1,"a":1}`, `{"a":1,"\u0061":1}`, `{"a"}`, "{\"\xff\":1}"} {
		if readObject([]byte(text), func(string, json.RawMessage) error { return nil }) == nil {
			t.Errorf("%q is read", text)
		}
	}
	if err := readObject([]byte(`{"b":1}`), func(string, json.RawMessage) error { return nil }, "a"); err == nil {
		t.Error("a missing member is not missed")
	}
}
