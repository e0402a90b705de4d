//go:build nightly

package deploy

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/publish"
)

// TestCache runs varnishd with default.vcl in front of two real replicas.
func TestCache(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	createStreams(t, c, c.connect(t, "operator"))
	output(t, registry, append([]string{"publish", eventFile(t, 300)}, c.as("publisher")...)...)
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

// TestCacheTimes: CDN-Cache-Control decides, not s-maxage. An answer is fresh for as long as it
// says, then shown while the cache fetches a new one, and also while no replica can give one.
func TestCacheTimes(t *testing.T) {
	t.Parallel()
	origin := newOrigin(t)
	origin.header.Set("Cache-Control", "public, s-maxage=0")
	origin.header.Set("CDN-Cache-Control", "max-age=2, stale-while-revalidate=300, stale-if-error=3600")
	cache := startVarnish(t, []*registrytest.Server{{HTTP: "http://" + origin.address}, {HTTP: "http://" + origin.address}})
	ask := func() string { _, _, body := get(t, cache+"/api/legit", nil); return body }
	asked := time.Now()
	await(t, cache+"/api/legit", "1")
	if ask() != "1" && time.Since(asked) < 2*time.Second {
		t.Error("s-maxage=0 was obeyed, not CDN-Cache-Control")
	}
	// No longer fresh: the old answer once, then the new one.
	until(t, func() string { return "asked again" }, func() bool { return ask() != "1" })
	origin.broken.Store(true)
	until(t, func() string { return "asked while broken" }, func() bool {
		if got := ask(); got == "" || strings.Contains(got, "error") {
			t.Fatal("a broken replica took the good answer away:", got)
		}
		return origin.refused.Load() >= 2
	})
}

// TestCacheForgets: 30 s after somebody was delisted, no list and no page that a cache shows names
// them, however seldom it is asked. Times in the cache are a hundredth of what they are.
func TestCacheForgets(t *testing.T) {
	t.Parallel()
	const second = time.Second / 100
	c := startNode(t)
	createStreams(t, c, c.connect(t, "operator"))
	output(t, registry, append([]string{"publish", eventFile(t, 30)}, c.as("publisher")...)...)
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

// TestCacheBoundsRanges: while an answer is fresh, which is forever here and for 10 s otherwise, a
// replica sees each of the 4,096 ranges at most once, however readers ask.
func TestCacheBoundsRanges(t *testing.T) {
	t.Parallel()
	r := serve(t, "--demo")
	await(t, r.Admin+"/readyz", "")
	cache := startVarnish(t, []*registrytest.Server{r, r}, strings.NewReplacer(`+ "s", 0s)`, `+ "h", 0s)`))
	lines := await(t, cache+"/api/ranges/000", ":00\n")
	asked := func() (n int) {
		for line := range strings.Lines(await(t, r.Admin+"/metrics", "")) {
			if name, count, _ := strings.Cut(strings.TrimSpace(line), "} "); strings.HasPrefix(name, "registry_http_requests_total") && strings.Contains(name, "/api/ranges/") {
				seen, err := strconv.ParseFloat(count, 64)
				if err != nil {
					t.Fatal(line)
				}
				n += int(seen)
			}
		}
		return n
	}
	const ranges, readers, times = 4096, 16, 3
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: readers}}
	defer client.CloseIdleConnections()
	var failed atomic.Int64
	var asking sync.WaitGroup
	for reader := range readers {
		asking.Go(func() {
			random := rand.New(rand.NewPCG(uint64(reader), 1))
			for i := reader; i < ranges*times; i += readers {
				request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s/api/ranges/%03x%s", cache, i%ranges, []string{"", "?", "?1", fmt.Sprint("?x=", i)}[random.IntN(4)]), nil)
				if err != nil {
					panic(err)
				}
				header := []string{"Cookie", "Authorization", "Accept-Encoding", "Cache-Control", "Pragma", "If-Modified-Since", "User-Agent", "X-Forwarded-For"}[random.IntN(8)]
				request.Header.Set(header, []string{"no-cache", "gzip", "a=b"}[random.IntN(3)])
				if random.IntN(2) == 0 {
					request.Host = fmt.Sprint("host-", i)
				}
				answer, err := client.Do(request)
				if err != nil {
					failed.Add(1)
					continue
				}
				body, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if err != nil || answer.StatusCode != http.StatusOK || len(body) != len(lines) || answer.Header.Get("Registry-As-Of") == "" {
					failed.Add(1)
				}
			}
		})
	}
	asking.Wait()
	if n := asked(); n > ranges || n == 0 || failed.Load() > 0 {
		t.Errorf("a replica saw %d of %d requests; %d failed", n, ranges*times, failed.Load())
	}
}

// copyOf is a copy of the lists that is kept by the feed.
type copyOf struct {
	base    string
	epoch   string
	at      uint64
	entries map[string]string // by list and entry id
}

// page asks for the next page and folds it. Its position never goes back.
func (c *copyOf) page(t *testing.T) (upToDate bool) {
	t.Helper()
	var page struct {
		Since, Until uint64
		UpToDate     bool
		Changes      []struct {
			Op, List string
			ID       string `json:"_id"`
			Entry    json.RawMessage
		}
	}
	url := fmt.Sprintf("%s/api/changes/%s?since=%d&limit=7", c.base, c.epoch, c.at)
	status, _, body := get(t, url, nil)
	if err := json.Unmarshal([]byte(body), &page); status != http.StatusOK || err != nil || page.Since != c.at || page.Until < c.at {
		t.Fatal(url, status, err, body)
	}
	for _, change := range page.Changes {
		if change.Op == "remove" {
			delete(c.entries, change.List+" "+change.ID)
			continue
		}
		var entry struct {
			ID string `json:"_id"`
		}
		require.NoError(t, json.Unmarshal(change.Entry, &entry))
		c.entries[change.List+" "+entry.ID] = string(change.Entry)
	}
	c.at = page.Until
	return page.UpToDate
}

// digest is the feed's, of the copy.
func (c *copyOf) digest() string {
	sum := new(big.Int)
	for key, entry := range c.entries {
		list, _, _ := strings.Cut(key, " ")
		hash := sha256.Sum256([]byte(list + "\n" + entry))
		sum.Add(sum, new(big.Int).SetBytes(hash[:16]))
	}
	return hex.EncodeToString(sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 128)).FillBytes(make([]byte, 16)))
}

// feed is a server's /api/changes.
type feed struct {
	Epoch    string
	Sequence uint64
	Digest   string
}

func feedOf(t *testing.T, base string) (f feed) {
	t.Helper()
	if status, _, body := get(t, base+"/api/changes", nil); status != http.StatusOK || json.Unmarshal([]byte(body), &f) != nil {
		t.Fatal(status, body)
	}
	return f
}

// TestCacheOfChanges: a cache that keeps every page 60 s too long makes a reader of the feed neither
// loop nor skip anything; one who waits for a change gets it through the cache at once. Times in the cache are a hundredth of what they are.
func TestCacheOfChanges(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	createStreams(t, c, c.connect(t, "operator"))
	output(t, registry, append([]string{"publish", eventFile(t, 60)}, c.as("publisher")...)...)
	r := serve(t, c.as("replica")...)
	await(t, r.Admin+"/readyz", "")
	cache := startVarnish(t, []*registrytest.Server{r, r}, strings.NewReplacer(
		"set beresp.grace = 0s;", "set beresp.grace = 0s; set beresp.ttl = 650ms;"))
	await(t, cache+"/api/changes", `"digest":"`)
	reader := &copyOf{base: cache, epoch: feedOf(t, r.HTTP).Epoch, entries: map[string]string{}}
	publisher := publish.New(jetStream(t, c.connect(t, "publisher")), publish.Config{Stream: events.DefaultStream})
	random := rand.New(rand.NewPCG(1, 2))
	var last uint64
	var revision int64
	change := func() {
		t.Helper()
		e := events.Event{ID: "1", Source: "https://moderation.example/", Type: events.TypeListed, Time: time.Now(), Data: events.Entry{
			Revision: 1,
			List:     events.Servers, EntryID: fmt.Sprint("cached", random.IntN(5)), ChatID: "1", Name: fmt.Sprint("x", random.IntN(100)), ReportID: "R", ReportedAt: time.Now()}}
		if random.IntN(3) == 0 {
			e.Type, e.Data = events.TypeDelisted, events.Delisting{Revision: 1, List: events.Servers, EntryID: fmt.Sprint("cached", random.IntN(5))}
		}
		revision++
		e.Data = events.Revised(e.Data, revision)
		if e.Type.Removes() {
			e.Time = time.Time{} // its data has it
		}
		ack, err := publisher.Publish(t.Context(), e)
		require.NoError(t, err)
		last = ack.Sequence
	}
	for range 60 {
		change()
		reader.page(t)
	}
	until(t, func() string { return "the replica has the last change" }, func() bool { return feedOf(t, r.HTTP).Sequence >= last })
	pages := 0
	until(t, func() string { return fmt.Sprintf("at %d of %d after %d pages", reader.at, last, pages) }, func() bool {
		pages++
		return reader.page(t) && reader.at >= last
	})
	if now := feedOf(t, r.HTTP); reader.digest() != now.Digest {
		t.Errorf("the copy is another one: %s, want %+v", reader.digest(), now)
	}

	lines := make(chan string)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read := func(target string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, cache+"/api/changes/"+reader.epoch+target, nil)
		if err != nil {
			t.Error(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(target, err)
			lines <- ""
			return
		}
		defer resp.Body.Close()
		body := bufio.NewScanner(resp.Body)
		for body.Scan() {
			lines <- body.Text()
		}
	}
	since := fmt.Sprint("since=", reader.at)
	for range 2 {
		go read("?wait=25&" + since)
	}
	until(t, func() string { return "two wait" }, func() bool {
		_, _, metrics := get(t, r.Admin+"/metrics", nil)
		return strings.Contains(metrics, "\nregistry_feed_waiting 2\n")
	})
	change()
	for range 3 {
		if got := <-lines; !strings.Contains(got, fmt.Sprintf(`"seq":%d,`, last)) {
			t.Errorf("%s, want %d", got, last)
		}
	}
	cancel()
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

// origin stands in for a replica where a test needs shorter times than the API's. It answers each
// request with the next number, until it is broken.
type origin struct {
	address string
	header  http.Header // set before the first request
	count   atomic.Int64
	broken  atomic.Bool
	refused atomic.Int64
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{header: http.Header{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o.address = l.Addr().String()
	server := &http.Server{Handler: o}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return o
}

// ServeHTTP always answers the cache's probe: a replica may fail at one request and answer others.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/check" {
		return
	}
	if o.broken.Load() {
		o.refused.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"error":"x"}`))
		return
	}
	for name := range o.header {
		w.Header().Set(name, o.header.Get(name))
	}
	_, _ = w.Write([]byte(strconv.FormatInt(o.count.Add(1), 10)))
}

// A replica that answers probes and is not ready costs no reader anything: the other one is asked.
func TestCacheAsksTheOtherReplica(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	createStreams(t, c, c.connect(t, "operator"))
	output(t, registry, append([]string{"publish", eventFile(t, 10)}, c.as("publisher")...)...)
	good, loading := serve(t, c.as("replica")...), serve(t, append(c.as("replica"), "--min-entries=100000")...)
	await(t, good.Admin+"/readyz", "")
	cache := startVarnish(t, []*registrytest.Server{good, loading}, strings.NewReplacer(`.url = "/api/check?id=1"`, `.url = "/openapi.yaml"`))
	await(t, cache+"/openapi.yaml", "openapi")
	for i := range 20 {
		if status, _, body := get(t, fmt.Sprint(cache, "/api/check?id=", i+1), nil); status != http.StatusOK {
			t.Fatal(i, status, body)
		}
	}
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
