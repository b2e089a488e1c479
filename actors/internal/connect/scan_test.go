package connect

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// plainClaims are the same claims as the standard library reads them, by exact name.
func plainClaims(data []byte) (*requestClaims, bool) {
	var all map[string]any
	if json.Unmarshal(data, &all) != nil || all == nil {
		return nil, false
	}
	right := true
	text := func(from map[string]any, name string) string {
		value, there := from[name]
		s, isText := value.(string)
		right = right && (isText || !there)
		return s
	}
	object := func(from map[string]any, name string) map[string]any {
		value, there := from[name]
		o, isObject := value.(map[string]any)
		right = right && (isObject || !there)
		return o
	}
	body := object(all, "nats")
	server, client, options := object(body, "server_id"), object(body, "client_info"), object(body, "connect_opts")
	c := &requestClaims{
		audience: text(all, "aud"), issuer: text(all, "iss"),
		serverName: text(server, "name"), serverID: text(server, "id"), serverXKey: text(server, "xkey"),
		userNkey: text(body, "user_nkey"), clientHost: text(client, "host"), clientKind: text(client, "kind"), clientName: text(options, "name"),
		token: text(options, "auth_token"), kind: text(body, "type"),
	}
	if value, there := body["version"]; there {
		n, isNumber := value.(float64)
		right = right && isNumber
		c.version = int(n)
	}
	return c, right
}

// Where both read the claims, they read the same; what the standard library takes,
// in the shape that a server writes, is read here too.
func FuzzReadClaims(f *testing.F) {
	f.Add(`{"aud":"a","jti":"x","iss":"i","nats":{"server_id":{"name":"n","id":"I","xkey":"X","tags":["a","b"]},"user_nkey":"U","client_info":{"host":"h","id":7,"kind":"k"},` +
		`"connect_opts":{"jwt":"e.y.J","auth_token":"t","name":"a \"client\" \u00e9 é","protocol":1},"client_tls":{"verified_chains":[["}{\\\""]]},"type":"authorization_request","version":2}}`)
	f.Add(`{}`)
	f.Add(` { "iss" : "a" , "iss" : "b" , "x" : [ 1 , { } ] } `)
	f.Add(`{"nats":{"version":-1}}`)
	f.Add(`{"nats":{"version":2.5}}`)
	f.Add(`{"iss":"a"`)
	f.Add(`{"iss":}`)
	f.Add(`{"a":[[[`)
	f.Add(`{"a":"\ud800"}`)
	f.Fuzz(func(t *testing.T, text string) {
		got := new(requestClaims)
		err := got.read(&scanner{data: []byte(text)})
		want, right := plainClaims([]byte(text))
		if want == nil || !right || err != nil {
			return
		}
		if merged(text) {
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nread as  %+v\nmeaning %+v", text, got, want)
		}
	})
}

// merged reports whether an object stands there twice: the one reader merges the
// two, the other takes the last. Neither is what a server writes.
func merged(text string) bool {
	for _, name := range []string{"nats", "server_id", "client_info", "connect_opts"} {
		if strings.Count(text, name) > 1 {
			return true
		}
	}
	return strings.Contains(text, `\u`) // a name may be spelled otherwise
}

func TestReadClaims(t *testing.T) {
	for text, want := range map[string]*requestClaims{
		`{"iss":"a","iss":"b"}`: {issuer: "b"},
		` { "nats" : { "version" : 2 , "type" : "x" } , "l" : [ 1 , { "iss" : "no" } , "," ] } `: {version: 2, kind: "x"},
		`{"nats":{"connect_opts":{"name":"a\"b\u00e9é\\","auth_token":""}}}`:                     {clientName: "a\"béé\\"},
		`{"nats":{"client_tls":{"certs":["}","]","\"}"]},"user_nkey":"U"}}`:                      {userNkey: "U"},
		`{"exp":-1.5e3,"iat":null,"x":true}`:                                                     {},
	} {
		got := new(requestClaims)
		if err := got.read(&scanner{data: []byte(text)}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{``, `[]`, `"x"`, `{`, `{"iss"`, `{"iss":`, `{"iss":"a`, `{"iss":"a"`, `{"iss":"a",`, `{"iss":"a",}`, `{"iss":1}`, `{"iss":null}`,
		`{"iss":"a"}x`, `{"iss":"a"}{}`, `{"x":}`, `{"x":,"iss":"a"}`, `{"nats":[]}`, `{"nats":{"version":"2"}}`, `{"nats":{"version":2.5}}`, `{"nats":{"version":1234567890}}`,
		`{"nats":{"server_id":"x"}}`, "{\"iss\":\"a\nb\"}", `{"iss":"\q"}`, `{iss:"a"}`, `{"x":[1,2`, `{"x":"\`} {
		if err := new(requestClaims).read(&scanner{data: []byte(text)}); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	deep := strings.Repeat(`{"nats":`, 3) + strings.Repeat(`[`, 1_000_000)
	if err := new(requestClaims).read(&scanner{data: []byte(deep)}); err == nil {
		t.Error("what never ends is read")
	}
}
