package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cotal-ai/authplane/supervisor"
)

// Defaults of an Attendant.
const (
	// Grace is how long an orderly close may take.
	Grace = 30 * time.Second
	// Hurry is what is left of it after a second signal.
	Hurry = 2 * time.Second

	// slack is how long after its deadline a close may still report what it left.
	slack = time.Second
	// retryPause is how long a close that failed halfway rests before it is tried again.
	retryPause = 250 * time.Millisecond
)

// ErrLate is a close that did not end within its deadline.
var ErrLate = errors.New("not closed within the deadline")

// Service is what is kept alive. space.Handle is one.
type Service interface {
	// Close ends the service in order. One that failed may be called again and
	// finishes the rest.
	Close(ctx context.Context) error
	// Closed is closed once nothing of the service is left.
	Closed() <-chan struct{}
	// Failed is closed when the service has given up; Err then says why.
	Failed() <-chan struct{}
	Err() error
}

// Attendant says how a service is watched.
type Attendant struct {
	// Signals asks for the end. The first one closes, the second hurries.
	Signals <-chan os.Signal
	// Manager is told what happens.
	Manager Manager
	// Well is asked before every sign of life to the manager; it returns false, or
	// hangs, when the service is beyond help.
	Well func() bool
	// Closing is called once, when the close begins, with what the service failed of or
	// nil; may be nil.
	Closing func(cause error)
	// Grace and Hurry stand in for the constants where they are not zero.
	Grace, Hurry time.Duration
}

// Ending is how it went.
type Ending struct {
	// Cause is why the service failed; nil when it was asked to end.
	Cause error
	// Err is what the close reported, ErrLate among it when it did not end in time.
	Err error
	// Closed says that nothing of the service is left.
	Closed bool
}

// Attend returns when the service has ended, or past the deadline. It tells the
// manager that the service is ready, so call it when it is.
func (a Attendant) Attend(service Service) Ending {
	a.Manager.Ready()
	cause := a.watch(service)
	a.Manager.Stopping()
	if a.Closing != nil {
		a.Closing(cause)
	}
	stop := a.Manager.Extend()
	defer stop()

	err := a.close(service)
	return Ending{Cause: cause, Err: err, Closed: isClosed(service)}
}

// watch waits until the service should end; the error says that it failed.
func (a Attendant) watch(service Service) error {
	beat, stop := a.Manager.Beats()
	defer stop()
	for {
		select {
		case <-a.Signals:
			return nil
		case <-service.Closed():
			return nil
		case <-service.Failed():
			if err := service.Err(); err != nil {
				return err
			}
			return errors.New("the service failed and did not say why")
		case <-beat:
			if a.Well == nil || a.Well() {
				a.Manager.Alive()
			}
		}
	}
}

// close closes the service under the deadline, which a further signal shortens.
func (a Attendant) close(service Service) error {
	ctx, cancel := context.WithTimeout(context.Background(), orDefault(a.Grace, Grace))
	defer cancel()

	result := make(chan error, 1) // one slot: a close that answers too late is not waited for
	go func() { result <- closeWhole(ctx, service) }()

	signals := a.Signals
	for {
		select {
		case err := <-result:
			return err
		case <-signals:
			signals = nil
			hurry := time.AfterFunc(orDefault(a.Hurry, Hurry), cancel)
			defer hurry.Stop()
		case <-ctx.Done():
			return lastWord(result)
		}
	}
}

// lastWord gives a close whose time is over a moment to report what it left.
func lastWord(result <-chan error) error {
	timer := time.NewTimer(slack)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
		return fmt.Errorf("close: %w", ErrLate)
	}
}

// closeWhole repeats a close that failed while something of the service is left,
// for as long as there is time. What a retry makes good is forgotten; a terminal
// refusal, which is reported once and never made good, is not.
func closeWhole(ctx context.Context, service Service) error {
	var lasting error
	for {
		err := service.Close(ctx)
		if isClosed(service) {
			return errors.Join(lasting, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("close: %w", ErrLate), lasting, err)
		case <-service.Closed():
			return errors.Join(lasting, err)
		case <-time.After(retryPause):
			lasting = errors.Join(lasting, terminal(err))
		}
	}
}

func terminal(err error) error {
	var refused []error
	for _, failed := range supervisor.Leaves(err) {
		if supervisor.IsTerminal(failed) {
			refused = append(refused, failed)
		}
	}
	return errors.Join(refused...)
}

func isClosed(service Service) bool {
	select {
	case <-service.Closed():
		return true
	default:
		return false
	}
}

func orDefault(given, otherwise time.Duration) time.Duration {
	if given > 0 {
		return given
	}
	return otherwise
}
