package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

// operating.md says what to do about each alert. One that looks at lists by their paths looks at every list. What the rules
// do, promtool tests in .ci/run.
func TestAlerts(t *testing.T) {
	page, err := os.ReadFile("operating.md")
	require.NoError(t, err)
	for alert, expr := range alerts(t) {
		require.Contains(t, string(page), alert)
		for _, l := range events.Lists() {
			require.False(t, strings.Contains(expr, "/api/(") && !strings.Contains(expr, string(l)), "%s leaves out %s: %s", alert, l, expr)
		}
	}
}

// alerts returns the alerts' expressions by name.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	text, err := os.ReadFile("prometheus/rules.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &file))
	all := map[string]string{}
	for _, rule := range file.Groups[0].Rules {
		all[rule.Alert] = rule.Expr
	}
	return all
}

// Every metric of an alert and of the dashboard is one that a running registry exports.
func TestMetricsExist(t *testing.T) {
	t.Parallel()
	r := serve(t, "--demo", "--snapshot-every=1s")
	await(t, r.Admin+"/readyz", "")
	get(t, r.HTTP+"/api/status", nil)
	exported := await(t, r.Admin+"/metrics", "registry_snapshot_age_seconds ")

	dashboard, err := os.ReadFile("grafana/registry.json")
	require.NoError(t, err)
	asked := string(dashboard)
	for _, expr := range alerts(t) {
		asked += "\n" + expr
	}
	for _, metric := range regexp.MustCompile(`\bregistry_\w+`).FindAllString(asked, -1) {
		require.Regexp(t, `(?m)^`+metric+`[{ ]`, exported)
	}
}
