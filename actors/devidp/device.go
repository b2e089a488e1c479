package devidp

import (
	"context"
	"slices"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
)

// device is one login of a device without a browser.
type device struct {
	userCode string
	state    op.DeviceAuthorizationState
}

func (s *storage) StoreDeviceAuthorization(_ context.Context, clientID, deviceCode, userCode string, expires time.Time, scopes []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if len(s.devices) >= maxPending {
		return errFull
	}
	for _, d := range s.devices {
		if d.userCode == userCode {
			return op.ErrDuplicateUserCode
		}
	}
	s.devices[deviceCode] = device{userCode, op.DeviceAuthorizationState{ClientID: clientID, Scopes: scopes, Expires: expires}}
	return nil
}

// GetDeviceAuthorizatonState gives a completed login once: its code is then spent.
// The name is spelled as the library spells it.
func (s *storage) GetDeviceAuthorizatonState(_ context.Context, clientID, deviceCode string) (*op.DeviceAuthorizationState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	d, known := s.devices[deviceCode]
	if !known || d.state.ClientID != clientID {
		return nil, errUnknown
	}
	if d.state.Done {
		delete(s.devices, deviceCode)
	}
	state := d.state
	state.Audience = slices.Clone(state.Audience) // the library appends to it
	return &state, nil
}

// approve completes the login of the device that shows userCode.
func (s *storage) approve(userCode, subject string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	for code, d := range s.devices {
		if d.userCode == userCode && !d.state.Done {
			d.state.Done, d.state.Subject, d.state.AuthTime = true, subject, s.now()
			s.devices[code] = d
			return nil
		}
	}
	return errUnknown
}
