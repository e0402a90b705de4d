//go:build unix && !race && measure

package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/eventstest/relay"
	"example.org/registry/events/pause"
	"example.org/registry/httpapi/admin"
)

var soakSeed = flag.Uint64("seed", 0, "seed of TestSoak; 0: a new one")

// soakConfig says how long and how hard.
type soakConfig struct {
	length  time.Duration // of the whole
	every   time.Duration // from one quiet point to the next
	seed    uint64
	entries int     // on the lists
	rate    int     // events a second
	reads   int     // requests a second
	growth  float64 // percent by which the live heap may grow
}

// TestSoak runs one broker and two replicas for long, does to them what happens to servers, and
// looks for what only time brings out. The package documentation says what is checked. Ctrl-C ends
// it and everything it has started.
func TestSoak(t *testing.T) {
	long(t)
	cfg := soakConfig{length: 30 * time.Second, every: 5 * time.Second, entries: 1000, rate: 200, reads: 40, growth: 10, seed: *soakSeed}
	if *soakFor > 0 {
		cfg.length, cfg.every = *soakFor, min(max(*soakFor/12, 5*time.Second), time.Minute)
	}
	if cfg.length >= 4*time.Minute { // a shorter one has too few samples to compare heaps to a percent
		cfg.entries, cfg.growth = 5000, 2
	}
	if cfg.seed == 0 {
		cfg.seed = rand.Uint64N(1_000_000)
	}
	ctx, cancel := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	s := newStage(t, cfg)
	err := s.soak(ctx)
	if ctx.Err() != nil {
		t.Fatal("interrupted")
	}
	require.NoError(t, err)
	failures, summary := judge(s.samples, cfg.growth)
	for _, line := range failures {
		t.Error(line)
	}
	t.Log(summary)
	s.sayCounts()
	for _, done := range []string{"kills", "poison events", "rebuild", "hostile requests"} {
		if s.report.counted(done) == 0 {
			t.Errorf("the soak had no %s", done)
		}
	}
}

// TestSoakInterrupted: whenever it is interrupted, the soak ends everything that it has started.
// TestMain looks for goroutines, which every process has, and the testing package for files.
func TestSoakInterrupted(t *testing.T) {
	long(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	s := newStage(t, soakConfig{length: time.Hour, every: time.Minute, entries: 200, rate: 200, reads: 40, seed: 1})
	if err := s.soak(ctx); err == nil {
		t.Error("it was not interrupted")
	}
}

// stage is everything that takes part. Each random number generator belongs to one goroutine.
type stage struct {
	t      *testing.T
	cfg    soakConfig
	report *report
	dir    string // of everything; with -artifacts it stays
	began  time.Time

	broker              *node
	toLiving, toUnlucky *relay.Relay
	disk                *registrytest.Disk // nil: none could be mounted
	living, unlucky     *replica
	backend             *backend
	readers             *registrytest.Readers

	deck                                                   []fault // to come
	samples                                                []sample
	faultRNG, killRNG, operatorRNG, hostileRNG, compareRNG *rand.Rand
}

func newStage(t *testing.T, cfg soakConfig) *stage {
	s := &stage{t: t, cfg: cfg, report: newReport(t), dir: t.ArtifactDir()}
	for i, rng := range []**rand.Rand{&s.faultRNG, &s.killRNG, &s.operatorRNG, &s.hostileRNG, &s.compareRNG} {
		*rng = rand.New(rand.NewPCG(cfg.seed, 10+uint64(i)))
	}
	t.Logf("soak for %s, seed %d, in %s", cfg.length, cfg.seed, s.dir)
	return s
}

// soak is the whole of it. What must not happen goes to the report; an error is why it could not go
// on.
func (s *stage) soak(ctx context.Context) error {
	if err := s.set(ctx); err != nil {
		return err
	}
	return s.play(ctx)
}

// set starts everything and publishes the first content. All of it ends with the test.
func (s *stage) set(ctx context.Context) (err error) {
	if s.broker, err = newEmbedded(filepath.Join(s.dir, "broker")); err != nil {
		return err
	}
	s.t.Cleanup(s.broker.kill)
	if err := s.broker.start(); err != nil {
		return err
	}
	if err := s.broker.listens(ctx); err != nil {
		return err
	}
	for _, to := range []**relay.Relay{&s.toLiving, &s.toUnlucky} {
		if *to, err = relay.Start(s.broker.addr); err != nil {
			return err
		}
		s.t.Cleanup((*to).Close)
	}
	if err := s.mount(); err != nil {
		return err
	}
	s.living, s.unlucky = s.replica("living", s.toLiving), s.replica("unlucky", s.toUnlucky)
	if err := s.living.start(); err != nil {
		return err
	}
	s.t.Cleanup(func() { s.farewell(s.living) })
	if err := s.living.WaitReady(ctx); err != nil { // it creates the stream
		return err
	}
	js, err := connect("nats://" + s.broker.addr)
	if err != nil {
		return err
	}
	s.t.Cleanup(js.Conn().Close)
	const batch = 20
	if s.backend, err = newBackend(js, s.cfg.entries, batch, s.cfg.seed, s.report); err != nil {
		return err
	}
	if err := s.backend.seed(ctx); err != nil {
		return err
	}
	if _, err := s.living.Settled(ctx, s.backend.last.Load()); err != nil { // an empty registry is at sequence 0
		return err
	}
	s.readers = &registrytest.Readers{Base: s.living.HTTP, Questions: questions(s.backend.content.entries), Fail: s.report.fail, Client: registrytest.NewClient(true),
		Turn: s.backend.calm.RLocker(), Last: s.backend.last.Load, Replica: true}
	if err := s.unlucky.start(); err != nil {
		return err
	}
	s.t.Cleanup(func() { s.farewell(s.unlucky) })
	return nil
}

func (s *stage) replica(name string, broker *relay.Relay) *replica {
	return newReplica(filepath.Join(s.dir, name), []string{"nats://" + broker.Addr()}, s.report, "--snapshot-every=20s")
}

// mount gives the living replica a small disk of its own, where that is allowed: its store twice, an
// archive and the index fit many times.
func (s *stage) mount() (err error) {
	path := filepath.Join(s.dir, "living")
	s.disk, err = registrytest.MountDisk(s.t.TempDir(), path, "256m")
	if errors.Is(err, os.ErrPermission) {
		s.t.Log("no disk is filled: only root may mount one, on Linux")
		return nil
	}
	if err != nil {
		return err
	}
	s.t.Cleanup(func() {
		if flag.Lookup("test.artifacts").Value.String() == "true" {
			err = os.CopyFS(path+".kept", os.DirFS(path))
		}
		if err := errors.Join(err, s.disk.Unmount()); err != nil {
			s.t.Error(err)
		}
	})
	return nil
}

// farewell stops a replica, which must end with status 0.
func (s *stage) farewell(r *replica) {
	if r.Exited() {
		return // somebody has said so
	}
	r.Signal(syscall.SIGCONT)
	if status := r.stop(); status != 0 {
		s.t.Errorf("the %s replica ended with status %d", r.name, status)
	}
}

// questions returns a fixed set, so that what a server caches of the answers is bounded and soon
// complete.
func questions(entries []events.Entry) []string {
	var all []string
	for _, list := range events.Lists() {
		for _, more := range []string{"", "?sort=popular&limit=60", "?sort=popular_asc&skip=20", "?sort=az&limit=5", "?sort=za", "?sort=oldest&skip=30",
			"?status=verified&proofs=with", "?proofs=private&sort=az", "?search=Kowalski", "?search=przelew&limit=10", "?search=za", "?search=nobody+at+all"} {
			all = append(all, "/api/"+string(list)+more)
		}
		all = append(all, "/"+string(list), "/"+string(list)+"?search=paypal")
	}
	for i := range min(len(entries), 60) {
		e := entries[i*len(entries)/60]
		all = append(all, "/api/check?id="+e.ChatID, "/api/check?search="+url.QueryEscape(e.Name), "/api/"+string(e.List)+"?search="+url.QueryEscape(e.Name))
		if i%6 == 0 {
			all = append(all, "/?search="+url.QueryEscape(e.Name), "/api/chat/avatar/"+e.ChatID)
		}
	}
	return append(all, "/", "/api", "/status", "/api/status", "/openapi.yaml", "/asyncapi.yaml", "/robots.txt", "/api/check?search=Łukasz")
}

// readerCount is how many readers ask at once.
const readerCount = 2

// play is traffic from the beginning to the end, and rounds of trouble with a quiet point after
// each.
func (s *stage) play(ctx context.Context) error {
	s.began = time.Now()
	group, inner := errgroup.WithContext(ctx)
	traffic, stop := context.WithCancel(inner)
	defer stop()
	defer s.readers.Client.CloseIdleConnections()
	for n := range readerCount {
		group.Go(func() error { s.readers.Run(traffic, s.cfg.reads/readerCount, s.cfg.seed+uint64(n)); return nil })
	}
	group.Go(func() error { s.backend.run(inner, traffic.Done(), s.cfg.rate); return nil })
	group.Go(func() error {
		defer stop()
		for round := 1; time.Since(s.began) < s.cfg.length || len(s.samples) < leastSamples; round++ {
			if err := s.round(inner, round); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// round is three quarters trouble, and as much time as it takes for the quiet point.
func (s *stage) round(ctx context.Context, n int) error {
	end := s.began.Add(time.Duration(n)*s.cfg.every - s.cfg.every/4)
	if least := time.Now().Add(s.cfg.every / 4); end.Before(least) {
		end = least
	}
	if err := s.trouble(ctx, end); err != nil {
		return err
	}
	if s.living.Exited() {
		return s.living.Died()
	}
	return s.quiet(ctx, n)
}

// quiet stops all traffic, waits until both replicas have everything, compares them, and takes a
// sample.
func (s *stage) quiet(ctx context.Context, n int) error {
	began := time.Now()
	s.backend.calm.Lock()
	defer s.backend.calm.Unlock()
	s.readers.Client.CloseIdleConnections()
	if err := s.agree(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	if err := s.rejected(ctx, s.compareRNG); err != nil {
		return err
	}
	x, err := s.measure(ctx)
	if err != nil {
		return err
	}
	if err := s.saveProfile(ctx, n); err != nil {
		return err
	}
	for _, r := range []*replica{s.living, s.unlucky} {
		if err := s.backend.shown(ctx, r, s.compareRNG); err != nil {
			return err
		}
	}
	s.samples = append(s.samples, x)
	s.t.Logf("%3d  %6s  %d events, %d reads, %d kills, %d rebuilds, agreed in %.1fs; %.0f goroutines, %.0f descriptors, live heap %.2f MB (%.2f MB after a rebuild), resident %.2f MB",
		n, x.after.Round(time.Second), s.backend.acked.Load(), s.readers.Answered.Load(), s.report.counted("kills"), s.report.counted("rebuild"),
		took.Seconds(), x.goroutines, x.descriptors, x.heap/1e6, x.fresh/1e6, x.resident/1e6)
	return nil
}

// agree checks that both replicas are at one sequence with one digest, which a replay of the stream
// has, too.
func (s *stage) agree(ctx context.Context) error {
	var all [2]admin.Projection
	for i, r := range []*replica{s.living, s.unlucky} {
		p, err := r.Settled(ctx, s.backend.last.Load())
		if err != nil {
			return err
		}
		all[i] = p
	}
	if all[0].Digest != all[1].Digest || all[0].Checkpoint != all[1].Checkpoint {
		s.report.fail("the replicas differ: %s at %d and %s at %d", all[0].Digest, all[0].Checkpoint, all[1].Digest, all[1].Checkpoint)
	}
	for i, r := range []*replica{s.living, s.unlucky} {
		out, err := s.command(ctx, r, "verify")
		if err != nil {
			s.report.fail("%v", err)
		} else if !strings.Contains(out, "digest "+all[i].Digest) {
			s.report.fail("verify of the %s replica compared another digest than %s: %s", r.name, all[i].Digest, out)
		}
	}
	return nil
}

// measure takes a sample of the living replica, as it is and after a rebuild. The checkpoint moves
// on if a rejected event was published again.
func (s *stage) measure(ctx context.Context) (x sample, err error) {
	old, err := s.use(ctx)
	if err != nil {
		return x, err
	}
	if _, err := s.command(ctx, s.living, "rebuild", "--yes"); err != nil {
		return x, err
	}
	s.report.count("rebuild")
	if err := s.tidy(); err != nil {
		return x, err
	}
	if x, err = s.use(ctx); err != nil {
		return x, err
	}
	x.fresh, x.heap = x.heap, old.heap
	x.after = time.Since(s.began)
	return x, nil
}

// use returns what the living replica uses once it has cached all that it can of the readers'
// questions.
func (s *stage) use(ctx context.Context) (x sample, err error) {
	if _, err := s.living.Settled(ctx, s.backend.last.Load()); err != nil {
		return x, err
	}
	if err := s.readers.Fill(ctx); err != nil {
		return x, err
	}
	heap, err := liveHeap(ctx, s.living)
	if err != nil {
		return x, err
	}
	x, err = usage(ctx, s.living)
	x.heap = heap
	return x, err
}

// saveProfile leaves a heap profile among the artifacts. Compare two with go tool pprof -base.
func (s *stage) saveProfile(ctx context.Context, n int) error {
	a, err := registrytest.Ask(ctx, s.living.Admin+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("heap-%03d.pb.gz", n)), a.Body, 0o600)
}

// sayCounts logs how often everything was done.
func (s *stage) sayCounts() {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(s.report.times)) {
		all = append(all, fmt.Sprintf("%s %d", what, s.report.times[what]))
	}
	s.t.Log(strings.Join(all, ", "))
}

// sample is a replica's resource use at a quiet point.
type sample struct {
	after       time.Duration // since the soak began
	goroutines  float64
	descriptors float64
	heap        float64 // bytes that live after a collection, of a read model that has grown old
	fresh       float64 // the same, right after a rebuild
	resident    float64 // bytes; for information
}

// usage reads goroutines and descriptors once they stand still: closed connections take a moment to
// go.
func usage(ctx context.Context, r *replica) (x sample, err error) {
	const still = 5
	same := 0
	_, waiting := registrytest.Await(ctx, "goroutines and descriptors stand still", func() bool {
		var now sample
		if now, err = metrics(ctx, r); err != nil {
			return true
		}
		if now.goroutines == x.goroutines && now.descriptors == x.descriptors {
			same++
		} else {
			same = 0
		}
		x = now
		return same == still || !pause.For(ctx, 100*time.Millisecond)
	})
	if err == nil {
		err = waiting
	}
	return x, err
}

func metrics(ctx context.Context, r *replica) (x sample, err error) {
	a, err := registrytest.Ask(ctx, r.Admin+"/metrics", nil)
	if err != nil {
		return x, err
	}
	for name, to := range map[string]*float64{"go_goroutines": &x.goroutines, "process_open_fds": &x.descriptors,
		"process_resident_memory_bytes": &x.resident} {
		if *to, err = number(a.Body, `(?m)^`+name+` (\S+)$`); err != nil {
			return x, fmt.Errorf("/metrics: %s: %w", name, err)
		}
	}
	return x, nil
}

// liveHeap returns the least that lives after some collections: what is pooled survives one, and
// the profile itself takes a little.
func liveHeap(ctx context.Context, r *replica) (least float64, err error) {
	const collections = 4
	least = math.Inf(1)
	for range collections {
		a, err := registrytest.Ask(ctx, r.Admin+"/debug/pprof/heap?gc=1&debug=1", nil)
		if err != nil {
			return 0, err
		}
		now, err := number(a.Body, `(?m)^# HeapAlloc = (\d+)$`)
		if err != nil {
			return 0, fmt.Errorf("/debug/pprof/heap: %w", err)
		}
		least = min(least, now)
	}
	return least, nil
}

func number(text []byte, pattern string) (float64, error) {
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("no line like %s", pattern)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// allowance is how many goroutines and descriptors more are no leak: a connection or a snapshot
// that is ending has one or two. A leak of one with every fault would be dozens.
const allowance = 2

// leastSamples have a second quarter and a last.
const leastSamples = 4

// judge compares the second quarter of the samples, when what fills up is full, with the last, by
// the least of each. A leak raises the least, too; what happens to be there at one quiet point and
// not at the next does not. It returns a line for each measure that has grown, and a summary of
// all.
func judge(samples []sample, growth float64) (failures []string, summary string) {
	n := len(samples)
	if n < leastSamples {
		return []string{fmt.Sprintf("too few quiet points to judge: %d", n)}, ""
	}
	early, late := samples[n/4:n/2], samples[n-n/4:]
	for _, m := range []struct {
		name  string
		of    func(sample) float64
		unit  float64
		grown func(before, after float64) bool
	}{
		{"goroutines", func(s sample) float64 { return s.goroutines }, 1, some},
		{"descriptors", func(s sample) float64 { return s.descriptors }, 1, some},
		{"KB of live heap", func(s sample) float64 { return s.heap }, 1024, percent(growth)},
		{"KB of live heap after a rebuild", func(s sample) float64 { return s.fresh }, 1024, percent(growth)},
	} {
		before, after := least(early, m.of), least(late, m.of)
		line := fmt.Sprintf("%.0f and %.0f %s (%+.2f %%)", before/m.unit, after/m.unit, m.name, (after/before-1)*100)
		summary += "; " + line
		if m.grown(before, after) {
			failures = append(failures, "not flat: "+line)
		}
	}
	return failures, "least in the second quarter and in the last" + summary
}

func some(before, after float64) bool { return after > before+allowance }

func percent(growth float64) func(before, after float64) bool {
	return func(before, after float64) bool { return after > before*(1+growth/100) }
}

func least(samples []sample, of func(sample) float64) float64 {
	low := of(samples[0])
	for _, s := range samples {
		low = min(low, of(s))
	}
	return low
}

// newEmbedded returns a broker as the program embeds it, which is not started.
func newEmbedded(dir string) (*node, error) {
	addr, err := eventstest.Address()
	return &node{addr: addr, dir: dir, args: []string{dir, addr}}, err
}

// listens waits until it takes connections.
func (n *node) listens(ctx context.Context) error {
	_, err := registrytest.Await(ctx, "the broker listens", func() bool {
		c, err := net.Dial("tcp", n.addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return err
}

// stop ends it in order.
func (n *node) stop() {
	n.stdin.Close()
	<-n.Ended()
	n.Process = nil
}
