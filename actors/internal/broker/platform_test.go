package broker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/cotal-ai/authplane/actors/internal/broker"
	"github.com/cotal-ai/authplane/actors/internal/natsd/natsdtest"
)

func TestReadinessMayAskOneService(t *testing.T) {
	space := natsdtest.NewSpace(t, "acme")
	c := dial(t, dialer(t, space), broker.PlatformReadiness("com_acme_billing"))
	if c.Label() != "cotal:platform-readiness:acme:com_acme_billing" {
		t.Errorf("its label is %s", c.Label())
	}
	may := func(can func(*testing.T, *nats.Conn, string) bool, want bool, subjects ...string) {
		t.Helper()
		for _, subject := range subjects {
			if can(t, c.NATS(), subject) != want {
				t.Errorf("%s: it can is %v", subject, !want)
			}
		}
	}
	may(mayPublish, true, "$SRV.PING.com_acme_billing", "$SRV.INFO.com_acme_billing.x", "$SRV.STATS.com_acme_billing.x")
	// What DATA asks the system for leads nowhere, and not even there may this.
	elsewhere := slices.DeleteFunc(slices.Clone(nobodyPublishes), func(s string) bool { return strings.HasPrefix(s, "$SYS.") })
	for _, subject := range []string{"REQ.ACCOUNT.PING.CONNZ", "REQ.USER.INFO"} {
		if err := c.NATS().Publish("$SYS."+subject, nil); err != nil || !violated(t, c.NATS(), `Publish to "authplane.nowhere.`+subject+`"`) {
			t.Errorf("$SYS.%s: it can, or %v", subject, err)
		}
	}
	may(mayPublish, false, append([]string{
		"$SRV.PING", "$SRV.PING.other", "$SRV.INFO", "$SRV.INFO.com_acme_billing", "$SRV.STATS.other.x", "$SRV.STATS.com_acme_billing.x.y",
		"com_acme_billing", "svc.ask", rows + "plane", "$JS.API.INFO",
	}, elsewhere...)...)
	may(maySubscribe, true, "_INBOX_"+c.ID()+".x")
	may(maySubscribe, false, append([]string{
		"$SRV.PING.com_acme_billing", "$SRV.>", "svc.ask", "_INBOX_u_x.y",
	}, nobodySubscribes...)...)
}
