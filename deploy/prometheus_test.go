package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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

// TestQueriesAgainstARunningRegistry: in a Prometheus that scrapes a running registry, every query
// of the dashboard has a result, every metric of an alert exists, and no alert fires.
func TestQueriesAgainstARunningRegistry(t *testing.T) {
	t.Parallel()
	r := serve(t, "--demo", "--data-dir="+t.TempDir(), "--snapshot-every=1s")
	await(t, r.Admin+"/readyz", "")
	get(t, r.HTTP+"/api/status", nil)
	get(t, r.HTTP+"/api/check?search=nitro", nil)
	await(t, r.Admin+"/metrics", "registry_snapshot_age_seconds ")
	api := startPrometheus(t, r.AdminAddr())
	await(t, api+"/api/v1/query?query="+url.QueryEscape(`count_over_time(registry_caught_up[1m]) >= 4`), `"value"`)
	for panel, expr := range panelQueries(t) {
		if n := results(t, api, expr); n == 0 {
			t.Errorf("%s: %s has no result", panel, expr)
		}
	}
	names := regexp.MustCompile(`\bregistry_\w+`)
	for alert, expr := range alerts(t) {
		results(t, api, expr)
		for _, metric := range names.FindAllString(expr, -1) {
			if results(t, api, metric) == 0 {
				t.Errorf("%s: nothing exports %s", alert, metric)
			}
		}
	}
	if n := results(t, api, `ALERTS`); n != 0 {
		_, _, said := get(t, api+"/api/v1/query?query=ALERTS", nil)
		t.Error("alerts about a healthy registry:", said)
	}
	// RegistrySlow names routes that the metric has.
	if results(t, api, `registry_http_requests_total{route=~"/api/(scammers|servers|legit|check)",status="200"} > 0`) == 0 {
		t.Error("RegistrySlow names no route")
	}
}

// startPrometheus starts Prometheus with this repository's configuration, which scrapes only
// target, and returns its address.
func startPrometheus(t *testing.T, target string) string {
	t.Helper()
	binary, dir := program(t, "prometheus"), t.TempDir()
	for _, file := range []string{"prometheus.yml", "rules.yml"} {
		text, err := os.ReadFile(filepath.Join("prometheus", file))
		require.NoError(t, err)
		changed := strings.NewReplacer("15s", "1s", `"replica-1:8081", "replica-2:8081"`, `"`+target+`"`,
			`authorization: { credentials_file: /run/secrets/admin-token }`, "").Replace(string(text))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(changed), 0o600))
	}
	address := freeAddress(t)
	cmd := exec.Command(binary, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+address)
	background(t, cmd)
	await(t, "http://"+address+"/-/ready", "")
	return "http://" + address
}

// background runs cmd until the test ends.
func background(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // by the signal
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s", said)
		}
	})
}

// freeAddress returns an address for a program that cannot report which port it got.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := eventstest.Address()
	require.NoError(t, err)
	return address
}

// results returns the number of series that a query yields.
func results(t *testing.T, api, expr string) int {
	t.Helper()
	status, _, body := get(t, api+"/api/v1/query?query="+url.QueryEscape(expr), http.Header{})
	var answer struct {
		Error string
		Data  struct{ Result []any }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Error(fmt.Sprint(expr, ": ", status, " ", answer.Error, err))
	}
	return len(answer.Data.Result)
}
