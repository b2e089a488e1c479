package plane

import (
	"slices"
	"time"

	"github.com/cotal-ai/authplane/actors/admin"
	"github.com/cotal-ai/authplane/actors/barrier"
	"github.com/cotal-ai/authplane/actors/claim"
	"github.com/cotal-ai/authplane/actors/evictor"
	"github.com/cotal-ai/authplane/actors/internal/broker"
	ledgerclaim "github.com/cotal-ai/authplane/actors/internal/claim"
	"github.com/cotal-ai/authplane/actors/internal/controller"
	"github.com/cotal-ai/authplane/actors/internal/ledger/stream"
	"github.com/cotal-ai/authplane/actors/internal/platform"
	"github.com/cotal-ai/authplane/actors/internal/trust"
	"github.com/cotal-ai/authplane/actors/issuer"
	"github.com/cotal-ai/authplane/actors/observer"
	"github.com/cotal-ai/authplane/actors/reader"
	"github.com/cotal-ai/authplane/actors/registrar"
	"github.com/cotal-ai/authplane/actors/retirement"
	"github.com/cotal-ai/authplane/actors/scanner"
	"github.com/cotal-ai/authplane/actors/writer"
	"github.com/cotal-ai/authplane/supervisor"
)

// Paths of the plane's actors, for who asks them.
const (
	Path           = "plane"
	Writer         = Path + "/writer"
	Reader         = Path + "/reader"
	Issuer         = Path + "/issuer"
	Barrier        = Path + "/barrier"
	Observer       = Path + "/observer"
	Evictor        = Path + "/evictor"
	LedgerScanner  = Path + "/" + scanner.Ledger
	RecordsScanner = Path + "/" + scanner.Records
	Claim          = Path + "/claim"
	Retirement     = Path + "/" + retirement.Name
	Admin          = Path + "/" + admin.Name
)

// Desk knows the operations of the plane.
var Desk = retirement.DeskOf(Retirement)

// Config is what the plane's actors share.
type Config struct {
	Dialer *broker.Dialer
	Stream stream.Config
	// Outlives is the longest life of a connection where there is no way into the system
	// account: then nobody is swept or kicked, and time proves that somebody is gone. 0
	// where there is.
	Outlives time.Duration
	// Account gives the public key of an account of the space, and CalloutUsers are those
	// of the users that may answer connects.
	Account      func(trust.Account) string
	CalloutUsers []string
	// Signer signs bearers, none of which lives longer than BearerLifetime, in whole
	// seconds; 0 is the longest there is.
	Signer         issuer.Signer
	BearerLifetime time.Duration
	// Controllers is what controllers are answered with.
	Controllers controller.Config
	// Platform is the door of whoever hosts the space.
	Platform *platform.Door
	// Presence is the path of the actor that has responders settle.
	Presence string
	// Installation and Records remember which streams are ours.
	Installation, Records writer.Installation
	// Registered and Run are what this process remembers of itself over all lives.
	Registered *registrar.Once
	Run        *ledgerclaim.Run
	// View shows who holds the plane.
	View *claim.View
	// Machine says to operators where this process runs.
	Machine string
	// NoStandby makes a plane that another process holds a failure to open.
	NoStandby bool
	// ServersLost are servers that the operator gave up for good.
	ServersLost []string
	// Troubles shows the operations that do not get on.
	Troubles *retirement.Troubles
	// Unreadable remembers the rows that could not be read.
	Unreadable *reader.Unreadable
	// Gates hears which gates of instances may have moved.
	Gates *reader.Gates
	// Lanes bounds the batches that this process has open.
	Lanes *stream.Lanes
}

// Spec describes the plane as a child of its space: what opens, in which order, in
// which stages it closes, and what a fence opens anew. When it fails upward, so does
// the space.
//
// The claim is given back only after the scanners it names are closed; while the
// broker cannot be reached for that, what could still do it stays open.
func Spec(c Config) supervisor.Spec {
	lanes := c.Lanes
	eyes, hands, evictorPath := c.servers()
	return supervisor.Spec{Name: Path, Restart: supervisor.Escalate, Group: &supervisor.Group{
		Children: slices.Concat([]supervisor.Spec{
			writer.Spec(writer.Config{
				Dialer: c.Dialer, Stream: c.Stream, Lanes: lanes, Installation: c.Installation, Unreadable: c.Unreadable.Met,
			}),
			registrar.Spec(registrar.Config{Dialer: c.Dialer, Stream: c.Stream, Lanes: lanes, Registered: c.Registered}),
			reader.Spec(reader.Config{
				Dialer: c.Dialer, Stream: c.Stream, Remembered: c.Installation.Remembered, Unreadable: c.Unreadable, Gates: c.Gates,
			}),
			issuer.Spec(issuer.Config{
				Dialer: c.Dialer, Stream: c.Stream, Lanes: lanes, Remembered: c.Installation.Remembered, Reader: Reader, Writer: Writer,
				Signer: c.Signer, Longest: c.BearerLifetime, Controllers: c.Controllers, Platform: c.Platform,
				Unreadable: c.Unreadable.Met,
			}),
			barrier.Spec(barrier.Config{Dialer: c.Dialer, Stream: c.Stream, Lanes: lanes, Authority: c.Installation, Records: c.Records, Claim: Claim, Desk: Desk}),
			eyes,
		}, hands, []supervisor.Spec{
			scanner.LedgerSpec(scanner.Config{Dialer: c.Dialer, Stream: c.Stream}),
			scanner.RecordsSpec(scanner.Config{Dialer: c.Dialer, Stream: c.Stream}),
			claim.Spec(claim.Config{
				Barrier: Barrier, LedgerScanner: LedgerScanner, RecordsScanner: RecordsScanner,
				Tells: []string{Desk, Admin}, Observer: Observer, Evictor: evictorPath, Instance: c.Stream.Instance, Machine: c.Machine,
				Run: c.Run, View: c.View, NoStandby: c.NoStandby, ServersLost: c.ServersLost,
			}),
			retirement.Spec(retirement.Config{
				Path: Retirement, Barrier: Barrier, Claim: Claim, Writer: Writer, Observer: Observer, Evictor: evictorPath,
				LedgerScanner: LedgerScanner, Presence: c.Presence, Instance: c.Stream.Instance, CalloutUsers: c.CalloutUsers,
				Troubles: c.Troubles, Outlives: c.Outlives,
			}),
			admin.Spec(admin.Config{
				Dialer: c.Dialer, Space: c.Stream.Space, Callers: c.Account(trust.SVC),
				Reader: Reader, Writer: Writer, Desk: Desk, Claim: Claim,
			}),
		}),
		Fence: supervisor.FencePlan{Ends: []string{retirement.Name}, Reopens: []string{scanner.Ledger, scanner.Records, "claim", admin.Name}},
		Stages: []supervisor.Stage{
			{Name: "operations", Close: []string{admin.Name, retirement.Name}},
			{Name: "readers", Close: []string{"reader", scanner.Records, scanner.Ledger}, Halts: true},
			{Name: "claim", Close: []string{"claim"}, Needs: []string{"barrier"}, Halts: true},
			{Name: "clients", Close: append([]string{"barrier", "issuer", "writer", "observer", "registrar"}, namesOf(hands)...)},
		},
	}}
}

// servers are the actors that talk to the system account: the one that asks, and the
// one that has connections dropped, with its path. Without a way into that account the
// first observes CTRL from within, and there is no other.
func (c Config) servers() (eyes supervisor.Spec, hands []supervisor.Spec, evictorPath string) {
	eyes = observer.Spec(observer.Config{Dialer: c.Dialer, Account: c.Account, NoSystem: c.Outlives > 0})
	if c.Outlives > 0 {
		return eyes, nil, ""
	}
	return eyes, []supervisor.Spec{evictor.Spec(evictor.Config{Dialer: c.Dialer})}, Evictor
}

func namesOf(specs []supervisor.Spec) []string {
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}
