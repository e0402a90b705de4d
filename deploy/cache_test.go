//go:build nightly

package deploy

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/publish"
)

// A cache with default.vcl in front of two replicas answers what they answer, as often as it may.
func TestCache(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	createStreams(t, c.connect(t, "operator"))
	c.run(t, "publisher", "publish "+eventFile(t, 300))
	var replicas []*registrytest.Server
	for range 2 {
		r := serve(t, c.as("replica")...)
		await(t, r.Admin+"/readyz", "")
		replicas = append(replicas, r)
	}
	cache := startVarnish(t, replicas)
	list := cache + "/api/scammers?limit=5"
	await(t, list, `"data":[`)

	// The second answer is from the cache, the same to the byte, and a browser sees the API's
	// headers.
	status, first, body := get(t, list+"&sort=az", nil)
	if status != http.StatusOK || first.Get("Cache-Status") != "varnish; fwd=miss" || !strings.Contains(body, `"data":[{`) {
		t.Error("first:", status, first, body)
	}
	status, second, again := get(t, list+"&sort=az", http.Header{"Cookie": {"a=b"}})
	if status != http.StatusOK || second.Get("Cache-Status") != "varnish; hit" || again != body || second.Get("Etag") != first.Get("Etag") {
		t.Error("second:", status, second)
	}
	if cc := second.Get("Cache-Control"); cc != "public, s-maxage=30, stale-while-revalidate=300" || second.Get("Cdn-Cache-Control") != "" {
		t.Errorf("Cache-Control %q, CDN-Cache-Control %q", cc, second.Get("Cdn-Cache-Control"))
	}
	if status, header, _ := get(t, list+"&sort=az", http.Header{"If-None-Match": {second.Get("Etag")}}); status != http.StatusNotModified {
		t.Error("a known tag:", status, header)
	}
	if status, page, _ := get(t, cache+"/scammers", nil); status != http.StatusOK || page.Get("Cache-Control") != second.Get("Cache-Control") {
		t.Error("a page:", status, page)
	}
	// Never from the cache: requests for an own write, donations, refusals.
	for _, ask := range []struct {
		url    string
		header http.Header
		status int
	}{
		{list + "&sort=az", http.Header{"Registry-Min-Sequence": {"300"}}, http.StatusOK},
		{cache + "/api/donate/status?id=nobody", nil, http.StatusNotFound},
		{cache + "/api/scammers?limit=0", nil, http.StatusBadRequest},
		{cache + "/api/check/batch?ids=1,2", nil, http.StatusOK},
	} {
		for range 2 {
			if status, header, _ := get(t, ask.url, ask.header); status != ask.status || header.Get("Cache-Status") != "varnish; fwd=miss" {
				t.Error(ask.url, status, header.Get("Cache-Status"))
			}
		}
	}
	// Without replicas, the cache still answers what was asked before, and says 503 in the API's
	// words to anything else.
	for _, r := range replicas {
		r.End(os.Kill)
	}
	if status, header, _ := get(t, list+"&sort=az", nil); status != http.StatusOK || header.Get("Cache-Status") != "varnish; hit" {
		t.Error("without replicas:", status, header)
	}
	status, header, body := get(t, list+"&sort=za", nil)
	if status != http.StatusServiceUnavailable || body != `{"error":"Trwa wczytywanie danych."}` || header.Get("Access-Control-Allow-Origin") != "*" {
		t.Error("without replicas, never asked before:", status, body)
	}
}

// 30 s after somebody was delisted, no list and no page that a cache shows names
// them, however seldom it is asked. Times in the cache are a hundredth of what they are.
func TestCacheForgets(t *testing.T) {
	t.Parallel()
	const second = time.Second / 100
	c := startNode(t)
	createStreams(t, c.connect(t, "operator"))
	c.run(t, "publisher", "publish "+eventFile(t, 30))
	r := serve(t, c.as("replica")...)
	await(t, r.Admin+"/readyz", "")
	cache := startVarnish(t, []*registrytest.Server{r, r}, strings.NewReplacer(
		`+ "s", 0s)`, `+ "0ms", 0s)`,
		"req.grace = 20s;", "req.grace = 200ms;",
		"set beresp.grace = 0s;", "set beresp.grace = 0s; set beresp.ttl = beresp.ttl * 0.01;",
	))
	var list struct {
		Data []struct {
			EntryID string `json:"_id"`
			Name    string `json:"name"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(await(t, cache+"/api/scammers", `"data":[{`)), &list))
	gone := list.Data[0].EntryID
	targets := []string{"/api/scammers", "/api/scammers?sort=az", "/scammers", "/scammers?sort=az", "/wpis/scammers/" + gone}
	for _, target := range targets {
		await(t, cache+target, gone)
	}
	publisher := publish.New(jetStream(t, c.connect(t, "publisher")), publish.Config{Stream: events.DefaultStream})
	ack, err := publisher.Publish(t.Context(), events.Event{
		ID: "1", Source: "https://moderation.example/", Type: events.TypeDelisted,
		Data: events.Delisting{Revision: 2, List: events.Scammers, EntryID: gone},
	})
	require.NoError(t, err)
	until(t, func() string { return "the replica has the delisting" }, func() bool {
		status, _, body := get(t, r.HTTP+"/api/scammers", http.Header{"Registry-Min-Sequence": {strconv.FormatUint(ack.Sequence, 10)}})
		return status == http.StatusOK && !strings.Contains(body, gone)
	})
	known := time.Now()
	until(t, func() string { return "30 s" }, func() bool { return time.Since(known) > 30*second })
	for _, target := range targets {
		if status, header, body := get(t, cache+target, nil); strings.Contains(body, gone) || status != http.StatusOK && !strings.Contains(target, gone) {
			t.Errorf("%s: %d, %s, still has the entry: %v", target, status, header.Get("Cache-Status"), strings.Contains(body, gone))
		}
	}
}

// startVarnish starts a cache in front of two replicas and returns its address. Each of edits
// changes the configuration.
func startVarnish(t *testing.T, replicas []*registrytest.Server, edits ...*strings.Replacer) string {
	t.Helper()
	binary, dir := program(t, "varnishd"), t.TempDir()
	text, err := os.ReadFile("varnish/default.vcl")
	require.NoError(t, err)
	vcl := string(text)
	for i, name := range []string{"replica-1", "replica-2"} {
		host, port, err := net.SplitHostPort(strings.TrimPrefix(replicas[i].HTTP, "http://"))
		require.NoError(t, err)
		vcl = strings.Replace(vcl, `.host = "`+name+`"; .port = "8080"`, `.host = "`+host+`"; .port = "`+port+`"`, 1)
	}
	for _, e := range edits {
		vcl = e.Replace(vcl)
	}
	file := filepath.Join(dir, "test.vcl")
	require.NoError(t, os.WriteFile(file, []byte(vcl), 0o644))
	address := freeAddress(t)
	background(t, exec.Command(binary, "-F", "-j", "none", "-n", filepath.Join(dir, "state"), "-f", file, "-a", address, "-s", "malloc,32m"))
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
