package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
)

// A file of credentials without a user's seed is named before anything is started.
func TestCredentials(t *testing.T) {
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	public, err := user.PublicKey()
	require.NoError(t, err)
	creds := "-----BEGIN NATS USER JWT-----\nx.y.z\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n"
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"seed":              {string(seed) + "\n", true},
		"creds":             {fmt.Sprintf(creds, seed), true},
		"empty":             {"", false},
		"public key":        {public, false},
		"creds, seed taken": {fmt.Sprintf(creds, ""), false},
	} {
		file := filepath.Join(t.TempDir(), "creds")
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		err := BrokerFlags{NATSFlags: NATSFlags{NATSCreds: file}}.Check()
		if c.good && err != nil || !c.good && (err == nil || !strings.HasPrefix(err.Error(), "--nats-creds: "+file)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
