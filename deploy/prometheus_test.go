package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// Prometheus' own tool understands configuration and rules. Each alert fires when it must and not
// before, and operating.md says what to do.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool := program(t, "promtool")
	output(t, promtool, "check", "rules", "prometheus/rules.yml")
	output(t, promtool, "test", "rules", "prometheus/rules_test.yml")
	output(t, promtool, "check", "config", "--syntax-only", "prometheus/prometheus.yml")
	for _, file := range []string{"prometheus/rules_test.yml", "operating.md"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for alert := range alerts(t) {
			if !strings.Contains(string(text), alert) {
				t.Errorf("%s does not mention %s", file, alert)
			}
		}
	}
}

// An alert that looks at one list by its path looks at every list.
func TestRulesNameEveryList(t *testing.T) {
	t.Parallel()
	for alert, expr := range alerts(t) {
		for _, l := range events.Lists() {
			if strings.Contains(expr, "/api/(") && !strings.Contains(expr, string(l)) {
				t.Errorf("%s leaves out %s: %s", alert, l, expr)
			}
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

// panelQueries returns the dashboard's queries by panel and legend, with its variables filled in.
func panelQueries(t *testing.T) map[string]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	text, err := os.ReadFile("grafana/registry.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &board))
	all := map[string]string{}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			expr := strings.NewReplacer("$instance", ".*", "$__rate_interval", "10s").Replace(target.Expr)
			all[panel.Title+": "+target.LegendFormat] = expr
		}
	}
	return all
}

// freeAddress returns an address for a program that cannot report which port it got.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := eventstest.Address()
	require.NoError(t, err)
	return address
}

// Every metric of an alert and of the dashboard is one that a running registry exports.
func TestMetricsExist(t *testing.T) {
	t.Parallel()
	r := serve(t, "--demo", "--data-dir="+t.TempDir(), "--snapshot-every=1s")
	await(t, r.Admin+"/readyz", "")
	get(t, r.HTTP+"/api/status", nil)
	await(t, r.Admin+"/metrics", "registry_snapshot_age_seconds ")
	_, _, exported := get(t, r.Admin+"/metrics", nil)

	queries := alerts(t)
	maps.Copy(queries, panelQueries(t))
	for what, expr := range queries {
		for _, metric := range regexp.MustCompile(`\bregistry_\w+`).FindAllString(expr, -1) {
			if !strings.Contains(exported, "\n"+metric+"{") && !strings.Contains(exported, "\n"+metric+" ") {
				t.Errorf("%s: nothing exports %s", what, metric)
			}
		}
	}
}
