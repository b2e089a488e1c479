package life

import (
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

const (
	extendEvery = 5 * time.Second
	extendBy    = 20 * time.Second
)

// Manager is the service manager that started the process, as told by the
// environment: systemd with Type=notify, or none, to whom all this says nothing.
type Manager struct {
	// tell sends one notification.
	tell func(state string)
	// every is how often a sign of life is due; 0 for never.
	every time.Duration
}

// NewManager finds the manager in $NOTIFY_SOCKET and $WATCHDOG_USEC.
func NewManager() Manager {
	m := Manager{tell: func(state string) {
		// Losing the manager is no reason to stop serving.
		_, _ = daemon.SdNotify(false, state)
	}}
	if limit, err := daemon.SdWatchdogEnabled(false); err == nil {
		m.every = limit / 2
	}
	return m
}

// Ready says that the service can be used.
func (m Manager) Ready() { m.tell(daemon.SdNotifyReady) }

// Stopping says that the service ends.
func (m Manager) Stopping() { m.tell(daemon.SdNotifyStopping) }

// Alive is the sign of life.
func (m Manager) Alive() { m.tell(daemon.SdNotifyWatchdog) }

// Beats ticks whenever a sign of life is due, until stop is called.
func (m Manager) Beats() (beat <-chan time.Time, stop func()) {
	if m.every == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(m.every)
	return ticker.C, ticker.Stop
}

// Extend asks the manager for patience, again and again, while the service starts
// or closes. It ends when stop has returned.
func (m Manager) Extend() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(extendEvery)
		defer ticker.Stop()
		for {
			m.tell(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendBy.Microseconds()))
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
