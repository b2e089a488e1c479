package world

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// RetireSubject is where the end of one incarnation is asked for on the control rail.
func (w *World) RetireSubject(owner, actor, uid string) string {
	return "cotal." + w.Config.Space + ".rail.auth.retire." + owner + "." + actor + "." + uid
}

// OnBehalf connects to the services' account as somebody who asks, on behalf of a
// principal, for the end of one incarnation: name and permissions are those that the
// service mints.
func (w *World) OnBehalf(of, target Person) (nc *nats.Conn, subject string) {
	w.Helper()
	subject = w.RetireSubject(target.Grant.Owner, target.Grant.Actor, target.Grant.UID)
	return w.Service("cotal:retire:"+w.Config.Space+":"+of.Grant.Owner+"."+of.Grant.Actor, subject), subject
}

// Service connects to the services' account under a name, as somebody who may publish
// one subject and hear his own inbox.
func (w *World) Service(name, subject string) *nats.Conn {
	w.Helper()
	user, err := nkeys.CreateUser()
	w.must(err)
	public, err := user.PublicKey()
	w.must(err)
	seed, err := os.ReadFile(filepath.Join(w.Init.OfflineDir, "svc.seed"))
	w.must(err)
	account, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	w.must(err)
	claims := jwt.NewUserClaims(public)
	claims.Name = name
	claims.Pub.Allow.Add(subject)
	claims.Sub.Allow.Add("_INBOX_" + public + ".>")
	token, err := claims.Encode(account)
	w.must(err)
	nc, err := nats.Connect(w.Config.NATSURL, nats.UserJWT(func() (string, error) { return token, nil }, user.Sign),
		nats.CustomInboxPrefix("_INBOX_"+public), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	w.must(err)
	w.Cleanup(nc.Close)
	return nc
}

// Rows are the sequences of all records of the authority, by key.
func (w *World) Rows() map[string]uint64 {
	w.Helper()
	rows := map[string]uint64{}
	for key, last := range w.records(w.authority()) {
		rows[key] = last.Sequence
	}
	return rows
}

// Settle waits until nothing is owed and nothing is asked for, so that no record moves
// by itself.
func (w *World) Settle() {
	w.Helper()
	of := w.authority()
	w.Poll("nothing to be owed or asked for", func() bool {
		for key, last := range w.records(of) {
			family, _, _ := strings.Cut(key, ".")
			var row struct{ UIDs, Ops []string }
			if family != "asked" && family != "owed" {
				continue
			}
			if err := json.Unmarshal(last.Data, &row); err != nil || len(row.UIDs)+len(row.Ops) > 0 {
				return false
			}
		}
		return true
	})
}

// authority is the stream of the authority's records, for somebody who owns its account.
func (w *World) authority() jetstream.Stream {
	w.Helper()
	js, err := jetstream.New(w.Owner("ctrl"))
	w.must(err)
	stream, err := js.Stream(w.Context(), "KV_cotal_authority_"+w.Config.Space)
	w.must(err)
	return stream
}

// records are the last messages of what the authority has recorded, by key.
func (w *World) records(of jetstream.Stream) map[string]*jetstream.RawStreamMsg {
	w.Helper()
	info, err := of.Info(w.Context(), jetstream.WithSubjectFilter(">"))
	w.must(err)
	records := map[string]*jetstream.RawStreamMsg{}
	for subject := range info.State.Subjects {
		last, err := of.GetLastMsgForSubject(w.Context(), subject)
		w.must(err)
		records[strings.TrimPrefix(subject, "$KV.cotal_authority_"+w.Config.Space+".")] = last
	}
	return records
}
