package serve

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnnouncer: a person reads where everything is, in four lines that stand together.
func TestAnnouncer(t *testing.T) {
	t.Parallel()
	r := project(t)
	var terminal bytes.Buffer
	cfg := r.cfg
	cfg.Terminal = &terminal
	cfg.HTTPAddr = "127.0.0.1:0"
	cfg.AdminAddr = "127.0.0.1:0"
	cfg.Public.Site = true
	l, err := bindListeners(cfg)
	require.NoError(t, err)
	defer l.close()

	require.NoError(t, (&announcer{cfg, r.live, r.health, l}).run(t.Context()))
	require.Regexp(t, `^ready  site       http://127\.0\.0\.1:\d+/
       API        http://127\.0\.0\.1:\d+/api
       operators  http://127\.0\.0\.1:\d+/projection
       broker     embedded, without an address \(--embedded-nats-addr=-\)
$`, terminal.String())
}
