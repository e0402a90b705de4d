package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "example.org/registry/"

// TestImports keeps the packages in one direction, and NATS, bbolt and HTTP out of those that are to know
// nothing of them: whatever packages import, themselves or through others, tests apart.
func TestImports(t *testing.T) {
	t.Parallel()
	const (
		http, gin, bbolt   = "net/http", "github.com/gin-gonic/", "go.etcd.io/bbolt"
		client, natsServer = "github.com/nats-io/", "github.com/nats-io/nats-server/"
		program, public    = module + "cmd/", module + "httpapi"
	)
	for packages, strangers := range map[string][]string{
		"events":        {http, gin, bbolt, client, module},
		"events/...":    {gin, bbolt, module + "readmodel", module + "snapshots", module + "projector", public, program},
		"readmodel":     {gin, bbolt, client, module + "snapshots", module + "projector", public, program},
		"readmodel/...": {gin, client, module + "snapshots", module + "projector", public, program},
		"snapshots":     {gin, natsServer, module + "projector", public, program},
		"projector":     {gin, natsServer, public, program},
		"httpapi/...":   {client, module + "snapshots", module + "projector", program},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+packages).Output()
		require.NoError(t, err, packages)
		deps := strings.Fields(string(out))
		require.Greater(t, len(deps), 10, packages)
		for _, imported := range deps {
			for _, stranger := range strangers {
				own := strings.HasPrefix(imported, module+strings.TrimSuffix(packages, "/..."))
				if strings.HasPrefix(imported, stranger) && !own {
					t.Errorf("%s must not know %s", packages, imported)
				}
			}
			if strings.HasSuffix(imported, "test") && strings.HasPrefix(imported, module) && !strings.HasSuffix(packages, "...") {
				t.Errorf("%s: %s is for tests", packages, imported)
			}
		}
	}
}
