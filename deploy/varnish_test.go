package deploy

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCache puts varnishd with the very configuration before two real replicas of the same stream.
func TestCache(t *testing.T) {
	c := startNode(t)
	createStreams(t, c, c.connect(t, "operator"))
	output(t, registry, append([]string{"publish", eventFile(t, 300)}, c.as("publisher")...)...)
	var replicas []*replica
	for range 2 {
		r := serve(t, c.as("replica")...)
		await(t, r.Admin+"/readyz", "")
		replicas = append(replicas, r)
	}
	cache := startVarnish(t, replicas)
	list := cache + "/api/scammers?limit=5"
	await(t, list, `"data":[`)

	// The second is from the cache, the same to the byte, and a browser is told what the API says.
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
	// Never from the cache: who has just published; donations; refusals.
	for _, ask := range []struct {
		url    string
		header http.Header
		status int
	}{
		{list + "&sort=az", http.Header{"Registry-Min-Sequence": {"300"}}, http.StatusOK},
		{cache + "/api/donate/status?id=nobody", nil, http.StatusNotFound},
		{cache + "/api/scammers?limit=0", nil, http.StatusBadRequest},
	} {
		for range 2 {
			if status, header, _ := get(t, ask.url, ask.header); status != ask.status || header.Get("Cache-Status") != "varnish; fwd=miss" {
				t.Error(ask.url, status, header.Get("Cache-Status"))
			}
		}
	}
	// No replica left: what was asked before is still answered, anything else is said in the API's words.
	for _, r := range replicas {
		_ = r.cmd.Process.Kill()
		<-r.ended
	}
	if status, header, _ := get(t, list+"&sort=az", nil); status != http.StatusOK || header.Get("Cache-Status") != "varnish; hit" {
		t.Error("without replicas:", status, header)
	}
	status, header, body := get(t, list+"&sort=za", nil)
	if status != http.StatusServiceUnavailable || body != `{"error":"Trwa wczytywanie danych."}` || header.Get("Access-Control-Allow-Origin") != "*" {
		t.Error("without replicas, never asked before:", status, body)
	}
}

// CDN-Cache-Control decides and not s-maxage: an answer is fresh for as long as the former says, then shown while a new
// one is got, and the old one while nobody can give a new one.
func TestCacheTimes(t *testing.T) {
	origin := newOrigin(t)
	origin.header.Set("Cache-Control", "public, s-maxage=0")
	origin.header.Set("CDN-Cache-Control", "max-age=2, stale-while-revalidate=300, stale-if-error=86400")
	cache := startVarnish(t, []*replica{{HTTP: "http://" + origin.address}, {HTTP: "http://" + origin.address}})
	ask := func() string { _, _, body := get(t, cache+"/api/legit", nil); return body }
	await(t, cache+"/api/legit", "1")
	if ask() != "1" {
		t.Error("s-maxage=0 was obeyed, not CDN-Cache-Control")
	}
	// Not fresh any more: the old one once, then the new.
	until(t, func() string { return "asked again" }, func() bool { return ask() != "1" })
	origin.broken.Store(true)
	until(t, func() string { return "asked while broken" }, func() bool {
		if got := ask(); got == "" || strings.Contains(got, "error") {
			t.Fatal("a broken replica took the good answer away:", got)
		}
		return origin.refused.Load() >= 2
	})
}

// startVarnish returns the cache's address.
func startVarnish(t *testing.T, replicas []*replica) string {
	t.Helper()
	binary, dir := program(t, "varnishd"), t.TempDir()
	text, err := os.ReadFile("varnish/default.vcl")
	if err != nil {
		t.Fatal(err)
	}
	vcl := string(text)
	for i, name := range []string{"replica-1", "replica-2"} {
		host, port, err := net.SplitHostPort(strings.TrimPrefix(replicas[i].HTTP, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		vcl = strings.Replace(vcl, `.host = "`+name+`"; .port = "8080"`, `.host = "`+host+`"; .port = "`+port+`"`, 1)
	}
	file := filepath.Join(dir, "test.vcl")
	if err := os.WriteFile(file, []byte(vcl), 0o644); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	background(t, exec.Command(binary, "-F", "-j", "none", "-n", filepath.Join(dir, "state"), "-f", file, "-a", address, "-s", "malloc,32m"))
	return "http://" + address
}
