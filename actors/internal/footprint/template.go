package footprint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cotal-ai/authplane/actors/internal/grants"
	"github.com/cotal-ai/authplane/actors/internal/ledger"
	"github.com/cotal-ai/authplane/actors/internal/names"
	"github.com/cotal-ai/authplane/messages"
)

// Limits of a footprint.
const (
	MaxParts   = 32      // consumers, and rows
	MaxFilters = 16      // of a consumer
	MaxName    = 200     // bytes of a stream, consumer, bucket or key, written out
	MaxValue   = 4 << 10 // bytes of a row's value, written out
	MaxWait    = 24 * time.Hour
	MaxCount   = 1_000_000 // deliveries, and messages that are worked on
	// MaxSubjects is what the subjects of all parts take together, in bytes, as the
	// permissions of one connection: a server takes no longer JWT than 64 KiB.
	MaxSubjects = 45 << 10
)

// A Problem is one thing that is wrong with a footprint. Key says where, such as
// `consumers[1].name`.
type Problem struct{ Key, Text string }

var (
	holder    = regexp.MustCompile(`\{[A-Za-z_]+\}`)
	token     = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	keyToken  = regexp.MustCompile(`^[A-Za-z0-9_=/-]+$`)
	uidHolder = "{uid}"
)

// longest is a machine whose names are as long as any may be.
func longest() (space string, p messages.Principal, uid string) {
	return strings.Repeat("s", names.MaxSpace), messages.Principal{Owner: "u_" + strings.Repeat("a", 26), Actor: strings.Repeat("A", names.MaxActor)}, strings.Repeat("0", 32)
}

// Check lists everything that is wrong with a configured footprint; nothing when
// whatever it is written out for can be asked of a server.
func Check(f messages.Footprint) []Problem {
	var found problems
	if len(f.Consumers) > MaxParts {
		found.note("consumers", "%d entries, at most %d", len(f.Consumers), MaxParts)
	}
	if len(f.Rows) > MaxParts {
		found.note("rows", "%d entries, at most %d", len(f.Rows), MaxParts)
	}
	for i, c := range f.Consumers {
		found.consumer(fmt.Sprintf("consumers[%d].", i), c)
	}
	for i, r := range f.Rows {
		found.row(fmt.Sprintf("rows[%d].", i), r)
	}
	if len(found) == 0 {
		found.twice(Render(f, "s", messages.Principal{Owner: "o", Actor: "a"}, "u"))
		found.size(f)
	}
	return found
}

// size notes what is too much together, however small each part is: what no server would
// let in, or the journal could not keep, would be refused to every machine.
func (p *problems) size(f messages.Footprint) {
	space, principal, uid := longest()
	f = Render(f, space, principal, uid)
	lists := "consumers and rows"
	if n := subjects(f); n > MaxSubjects {
		p.note(lists, "need subjects of %d bytes together, at most %d", n, MaxSubjects)
	}
	entry := ledger.NewProvision(principal, uid, strings.Repeat("0", 64), f)
	entry.Step, entry.Kept, entry.At = messages.ProvisionCompensating, true, time.UnixMilli(1<<41)
	for range ledger.MaxDrivers {
		entry.Drivers = append(entry.Drivers, messages.ProvisionDriver{ID: uid, Until: entry.At})
	}
	if _, err := ledger.EncodeProvision(entry, uid); err != nil {
		p.note(lists, "take more together than the journal keeps")
	}
}

// subjects is how many bytes the subjects take by which a footprint is made and removed.
func subjects(f messages.Footprint) (bytes int) {
	var all []string
	for _, c := range f.Consumers {
		of := "$JS.API.CONSUMER.CREATE." + c.Stream + "." + c.Name
		all = append(all, of)
		if len(c.Filters) == 1 {
			all[len(all)-1] += "." + c.Filters[0]
		}
		all = append(all, of)
	}
	for _, r := range f.Rows {
		of := "$KV." + r.Bucket + "." + r.Key
		all = append(all, of, "$JS.API.DIRECT.GET.KV_"+r.Bucket+"."+of, "$JS.API.STREAM.INFO.KV_"+r.Bucket)
	}
	text, _ := json.Marshal(all) // strings always can be
	return len(text)
}

type problems []Problem

func (p *problems) note(key, format string, args ...any) {
	*p = append(*p, Problem{key, fmt.Sprintf(format, args...)})
}

func (p *problems) consumer(at string, c messages.FootprintConsumer) {
	p.place(at+"stream", c.Stream)
	p.name(at+"name", c.Name, func(name string) bool { return token.MatchString(name) }, "[A-Za-z0-9_-]")
	if len(c.Filters) > MaxFilters {
		p.note(at+"filters", "%d entries, at most %d", len(c.Filters), MaxFilters)
	}
	for i, filter := range c.Filters {
		key := fmt.Sprintf("%sfilters[%d]", at, i)
		if text, known := p.written(key, filter); known && (!grants.Covers(">", text) || strings.ContainsAny(text, "{}")) {
			p.note(key, "%.80q is no subject pattern of at most %d bytes", filter, grants.MaxPatternBytes)
		}
		for j := range i {
			if grants.Overlap(example(c.Filters[j]), example(filter)) {
				p.note(key, "overlaps filters[%d]", j)
			}
		}
	}
	p.oneOf(at+"ack", c.Ack, "explicit", "all", "none")
	p.oneOf(at+"deliver", c.Deliver, "all", "new", "last")
	if c.AckWait < 0 || c.AckWait > MaxWait || c.AckWait%time.Millisecond != 0 {
		p.note(at+"ack_wait", "%s is not whole milliseconds up to %s", c.AckWait, MaxWait)
	}
	if c.MaxDeliver < 0 || c.MaxDeliver > MaxCount {
		p.note(at+"max_deliver", "%d is not 0 to %d", c.MaxDeliver, MaxCount)
	}
	if c.MaxAckPending < 0 || c.MaxAckPending > MaxCount {
		p.note(at+"max_ack_pending", "%d is not 0 to %d", c.MaxAckPending, MaxCount)
	}
	if c.Ack == "none" && (c.AckWait != 0 || c.MaxAckPending != 0) {
		p.note(at+"ack", "none takes neither ack_wait nor max_ack_pending")
	}
}

func (p *problems) row(at string, r messages.FootprintRow) {
	p.place(at+"bucket", r.Bucket)
	p.name(at+"key", r.Key, isKey, "[A-Za-z0-9_=/-] in tokens, parted by single dots")
	if text, known := p.written(at+"value", r.Value); known && (len(text) > MaxValue || !utf8.ValidString(text)) {
		p.note(at+"value", "is not text of at most %d bytes", MaxValue)
	}
}

// place checks the name of what is there for everybody.
func (p *problems) place(at, name string) {
	for _, h := range holder.FindAllString(name, -1) {
		if h != "{space}" {
			p.note(at, "%s: only {space} can stand here, since it is there before the machine", h)
			return
		}
	}
	text := example(name)
	if len(text) > MaxName || !token.MatchString(text) {
		p.note(at, "%.80q is not 1 to %d characters of [A-Za-z0-9_-]", name, MaxName)
	}
}

// name checks the name of a part. With the incarnation in it nobody else has one of
// that name, neither before it nor after it.
func (p *problems) name(at, name string, fits func(string) bool, of string) {
	text, known := p.written(at, name)
	switch {
	case !known:
	case len(text) > MaxName || !fits(text):
		p.note(at, "%.80q is not 1 to %d characters of %s", name, MaxName, of)
	case !strings.Contains(name, uidHolder):
		p.note(at, "%.80q lacks %s, so that the next incarnation would have the same", name, uidHolder)
	}
}

// written is a template as it is for the longest names; known is false when something
// stands in it for nothing.
func (p *problems) written(at, template string) (text string, known bool) {
	for _, h := range holder.FindAllString(template, -1) {
		if h != "{owner}" && h != "{actor}" && h != uidHolder && h != "{space}" {
			p.note(at, "%.40s stands for nothing; there are {owner}, {actor}, {uid} and {space}", h)
			return "", false
		}
	}
	return example(template), true
}

func example(template string) string {
	space, principal, uid := longest()
	return words(space, principal, uid).Replace(template)
}

func (p *problems) oneOf(at, value string, allowed ...string) {
	if value != "" && !slices.Contains(allowed, value) {
		p.note(at, "%.40q is none of %s", value, strings.Join(allowed, ", "))
	}
}

// twice notes parts of one name.
func (p *problems) twice(f messages.Footprint) {
	seen := map[string]int{}
	note := func(list string, i int, name string) {
		if before, is := seen[list+" "+name]; is {
			p.note(fmt.Sprintf("%s[%d]", list, i), "has the name of %s[%d]", list, before)
			return
		}
		seen[list+" "+name] = i
	}
	for i, c := range f.Consumers {
		note("consumers", i, c.Stream+" "+c.Name)
	}
	for i, r := range f.Rows {
		note("rows", i, r.Bucket+" "+r.Key)
	}
}

func isKey(key string) bool {
	for part := range strings.SplitSeq(key, ".") {
		if !keyToken.MatchString(part) {
			return false
		}
	}
	return true
}

func words(space string, p messages.Principal, uid string) *strings.Replacer {
	return strings.NewReplacer("{space}", space, "{owner}", p.Owner, "{actor}", p.Actor, uidHolder, uid)
}

// Render writes a footprint out for one incarnation, with the defaults filled in. The
// footprint passed Check.
func Render(f messages.Footprint, space string, p messages.Principal, uid string) messages.Footprint {
	in := words(space, p, uid)
	var out messages.Footprint
	for _, c := range f.Consumers {
		filters := make([]string, len(c.Filters))
		for i, filter := range c.Filters {
			filters[i] = in.Replace(filter)
		}
		c.Stream, c.Name, c.Filters = in.Replace(c.Stream), in.Replace(c.Name), filters
		c.Ack, c.Deliver = cmp.Or(c.Ack, "explicit"), cmp.Or(c.Deliver, "all")
		out.Consumers = append(out.Consumers, c)
	}
	for _, r := range f.Rows {
		out.Rows = append(out.Rows, messages.FootprintRow{Bucket: in.Replace(r.Bucket), Key: in.Replace(r.Key), Value: in.Replace(r.Value)})
	}
	return out
}

// Uses lists, with the placeholders, what a machine publishes to use its footprint: it
// looks at its consumers, pulls from them and acknowledges, and reads its rows.
func Uses(f messages.Footprint) (subjects []string) {
	for _, c := range f.Consumers {
		of := c.Stream + "." + c.Name
		subjects = append(subjects, "$JS.API.CONSUMER.INFO."+of, "$JS.API.CONSUMER.MSG.NEXT."+of, "$JS.ACK."+of+".>")
	}
	for _, r := range f.Rows {
		subjects = append(subjects, "$JS.API.DIRECT.GET.KV_"+r.Bucket+".$KV."+r.Bucket+"."+r.Key)
	}
	return subjects
}
