package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/projector/rejected"
)

// What a publisher wrote makes no line wider than a screen or two: not its own, and not the others'.
func TestRejectedTableIsBounded(t *testing.T) {
	long := strings.Repeat("ą\x1b", 1750)
	var out strings.Builder
	require.NoError(t, (&rejectedListCmd{All: true}).table(&out, []rejected.Copy{
		{Sequence: 1, Subject: "registry.scammers.a", Reason: "not JSON"}, {Sequence: 2, Subject: "registry.scammers." + long + ".end", Reason: long},
	}, nil))
	require.Contains(t, out.String(), ".end")
	for line := range strings.Lines(out.String()) {
		require.Less(t, len([]rune(line)), 400)
	}
}
