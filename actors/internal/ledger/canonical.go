package ledger

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/cotal-ai/authplane/messages"
)

// rowVersion is the only version of every row there is.
const rowVersion = 1

// largestNumber is the largest integer that every JSON reader holds exactly.
const largestNumber = 1<<53 - 1

// encode writes a row's one canonical form: the fields in the order of the
// struct, nothing escaped that need not be.
func encode(fields any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		return nil, messages.InternalFault.From(err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// decode reads a row that we wrote, and refuses every other: what does not encode
// back to the very same bytes has an unknown, missing, doubled or reordered field,
// a number that is no integer, or something behind its end.
func decode[F any](row Row, fields *F) error {
	if err := json.Unmarshal(row.Value, fields); err != nil {
		return corrupt(row.Key, "not the JSON of its family")
	}
	again, err := encode(fields)
	if err != nil || !bytes.Equal(again, row.Value) {
		return corrupt(row.Key, "not in canonical form")
	}
	return nil
}

// millis is a time as rows hold it.
func millis(t time.Time) int64 { return t.UnixMilli() }

// instant is the inverse of millis, in UTC.
func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// isInstant reports whether ms can have come from a clock of ours.
func isInstant(ms int64) bool { return ms > 0 && ms <= largestNumber }

// isCount reports whether n can count something that begins at 1.
func isCount(n uint64) bool { return n >= 1 && n <= largestNumber }

// isSet reports whether list is strictly ascending.
func isSet(list []string) bool {
	for i := 1; i < len(list); i++ {
		if list[i-1] >= list[i] {
			return false
		}
	}
	return true
}
