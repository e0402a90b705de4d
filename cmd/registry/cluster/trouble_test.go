//go:build unix && !race && measure

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events/eventstest/relay"
	"example.org/registry/events/pause"
)

// trouble is everything at once until a moment. What was broken is whole again when it returns.
func (s *stage) trouble(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, all := range []func(context.Context) error{s.misfortunes, s.kills, s.operate, s.attack} {
		group.Go(func() error { return all(ctx) })
	}
	return group.Wait()
}

func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

// fault happens to the broker, the network, the disk or the living replica, and is over when it
// returns. Once begun it is undone whatever ctx says. An error ends the soak.
type fault struct {
	name string
	do   func(ctx context.Context, rng *rand.Rand) error
}

func (s *stage) faults() []fault {
	all := []fault{
		{"broker killed", s.brokerKilled}, {"broker restarted", s.brokerRestarted}, {"broker stopped", s.brokerStopped},
		{"network away", s.networkAway}, {"network flapping", s.networkFlapping}, {"network a black hole", s.networkHole},
		{"replica stopped", s.replicaStopped},
	}
	if s.disk != nil {
		all = append(all, fault{"disk full", s.diskFull})
	}
	return all
}

// misfortunes does one fault after the other until ctx ends. Each has its turn before one has a
// second.
func (s *stage) misfortunes(ctx context.Context) error {
	for pause.For(ctx, between(s.faultRNG, 300*time.Millisecond, 2*time.Second)) {
		if len(s.deck) == 0 {
			s.deck = s.faults()
			s.faultRNG.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
		}
		f := take(&s.deck, 0)
		if err := f.do(ctx, s.faultRNG); err != nil {
			return err
		}
		s.report.count(f.name)
	}
	return nil
}

func (s *stage) brokerKilled(ctx context.Context, rng *rand.Rand) error {
	s.broker.kill()
	pause.For(ctx, between(rng, 0, 3*time.Second))
	return s.brokerUp(ctx)
}

func (s *stage) brokerRestarted(ctx context.Context, _ *rand.Rand) error {
	s.broker.stop()
	return s.brokerUp(ctx)
}

func (s *stage) brokerUp(ctx context.Context) error {
	if err := s.broker.start(); err != nil {
		return err
	}
	return s.broker.listens(context.WithoutCancel(ctx))
}

func (s *stage) brokerStopped(ctx context.Context, rng *rand.Rand) error {
	s.broker.Signal(syscall.SIGSTOP)
	pause.For(ctx, between(rng, 500*time.Millisecond, 7*time.Second))
	s.broker.Signal(syscall.SIGCONT)
	return nil
}

func (s *stage) networkAway(ctx context.Context, rng *rand.Rand) error {
	return s.cutOff(ctx, rng, (*relay.Relay).Away)
}

func (s *stage) networkHole(ctx context.Context, rng *rand.Rand) error {
	return s.cutOff(ctx, rng, (*relay.Relay).Blackhole)
}

// cutOff takes the broker from the living replica, and every other time from the unlucky one, for
// less or for more than the 4 to 6 s in which a replica misses the broker's signs of life.
func (s *stage) cutOff(ctx context.Context, rng *rand.Rand, set func(*relay.Relay, bool)) error {
	set(s.toLiving, true)
	set(s.toUnlucky, rng.IntN(2) == 0)
	pause.For(ctx, between(rng, time.Second, 9*time.Second))
	set(s.toLiving, false)
	set(s.toUnlucky, false)
	return nil
}

func (s *stage) networkFlapping(ctx context.Context, rng *rand.Rand) error {
	for range 5 + rng.IntN(15) {
		s.toLiving.Away(true)
		pause.For(ctx, between(rng, 10*time.Millisecond, 100*time.Millisecond))
		s.toLiving.Away(false)
		if !pause.For(ctx, between(rng, 50*time.Millisecond, 500*time.Millisecond)) {
			return nil
		}
	}
	return nil
}

func (s *stage) replicaStopped(ctx context.Context, rng *rand.Rand) error {
	s.living.Signal(syscall.SIGSTOP)
	pause.For(ctx, between(rng, 200*time.Millisecond, 3*time.Second))
	s.living.Signal(syscall.SIGCONT)
	return nil
}

// diskFull leaves the living replica's data directory without room. Given time, the replica says
// so.
func (s *stage) diskFull(ctx context.Context, rng *rand.Rand) error {
	if err := s.disk.Fill(0); err != nil {
		return err
	}
	if pause.For(ctx, between(rng, time.Second, 4*time.Second)) {
		if p, err := s.living.Projection(ctx); err == nil && p.LastError != nil {
			s.report.count("disk full and said")
		}
	}
	return s.disk.Free()
}

// kills ends the unlucky replica at random moments, damages what it has saved, and starts it again,
// until ctx ends.
func (s *stage) kills(ctx context.Context) error {
	for pause.For(ctx, between(s.killRNG, 200*time.Millisecond, max(s.cfg.every/10, 400*time.Millisecond))) {
		if s.unlucky.Exited() {
			return s.unlucky.Died()
		}
		s.unlucky.End(os.Kill)
		s.report.count("kills")
		if err := s.damage(s.killRNG); err != nil {
			return err
		}
		if err := s.unlucky.start(); err != nil {
			return err
		}
	}
	return nil
}

// damage does something to the killed replica's store, one time in two.
func (s *stage) damage(rng *rand.Rand) error {
	store := filepath.Join(s.unlucky.data, "registry.db")
	aside, err := filepath.Glob(store + ".damaged-*") // set aside before
	for _, file := range aside {
		err = errors.Join(err, os.Remove(file))
	}
	switch rng.IntN(4) {
	case 0:
		s.report.count("bytes flipped")
		err = errors.Join(err, flip(store, rng))
	case 1:
		s.report.count("stores deleted")
		err = errors.Join(err, os.Remove(store))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was killed before it had one
	}
	return err
}

// flip changes a bit of a file.
func flip(name string, rng *rand.Rand) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	at, one := rng.Int64N(info.Size()), make([]byte, 1)
	if _, err := f.ReadAt(one, at); err != nil {
		return err
	}
	one[0] ^= 1 << rng.IntN(8)
	_, err = f.WriteAt(one, at)
	return err
}

// command runs a command of the program against a replica.
func (s *stage) command(ctx context.Context, r *replica, args ...string) (string, error) {
	return r.command(ctx, []string{"nats://" + s.broker.addr}, args...)
}

// operate gives an operator's commands until ctx ends. While something is broken they may fail, but
// only as the contract says: with status 1. Some are interrupted.
func (s *stage) operate(ctx context.Context) error {
	file := filepath.Join(s.dir, "archive")
	all := [][]string{{"rebuild", "--yes"}, {"snapshot", "create"}, {"snapshot", "create", "--output=" + file}, {"snapshot", "verify", file},
		{"snapshot", "list"}, {"export"}, {"verify"}, {"rejected", "list"}, {"ready"}}
	for pause.For(ctx, between(s.operatorRNG, 500*time.Millisecond, 4*time.Second)) {
		if err := s.tolerant(ctx, all[s.operatorRNG.IntN(len(all))]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) tolerant(ctx context.Context, args []string) error {
	name := strings.TrimSuffix(strings.Join(args[:min(2, len(args))], " "), " --yes")
	limited, cancel := context.WithTimeout(ctx, between(s.operatorRNG, 100*time.Millisecond, 15*time.Second))
	defer cancel()
	_, err := s.command(limited, s.living, args...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		s.report.count(name)
	case limited.Err() != nil:
		s.report.count("commands cut short")
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		s.report.count("commands refused")
	default:
		s.report.fail("%v", err)
	}
	return s.tidy()
}

// tidy deletes replaced stores, as an operator does.
func (s *stage) tidy() error {
	files, err := filepath.Glob(filepath.Join(s.living.data, "registry.db.replaced-*"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// rejected manages rejected events: it lists them, tries one again, which is rejected again, or
// refused if something newer is on its subject, and now and then erases the copies.
func (s *stage) rejected(ctx context.Context, rng *rand.Rand) error {
	list, err := s.command(ctx, s.living, "rejected", "list")
	if err != nil {
		return err
	}
	found := regexp.MustCompile(`(?m)^(\d+)  `).FindAllStringSubmatch(list, -1) // sequences
	if len(found) == 0 {
		return nil
	}
	out, err := s.command(ctx, s.living, "rejected", "retry", found[rng.IntN(len(found))][1])
	switch {
	case err == nil:
		s.report.count("rejected retry")
	case strings.Contains(out, "not published again"):
		s.report.count("rejected retry refused")
	default:
		return err
	}
	if rng.IntN(3) == 0 {
		s.report.count("rejected purge")
		_, err = s.command(ctx, s.living, "rejected", "purge", "registry-rejected.>")
		return err
	}
	return nil
}

// hostile is a request that nobody should make, and the status it gets: 0 is any, -1 means that the
// request never ends.
type hostile struct {
	request string
	status  int
}

func hostileGet(target string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
}

// hostiles returns some of each kind. The tests of httpapi have all.
func hostiles() []hostile {
	get := hostileGet
	return []hostile{
		{get("/api/scammers?search=%zz"), 400}, {get("/api/scammers?search=%00"), 400}, {get("/api/scammers?limit=61"), 400},
		{get("/api/scammers?skip=1&skip=2"), 400}, {get("/api/check"), 400}, {get("/api/check?search=" + strings.Repeat("a", 5000)), 400},
		{get("/api/nothing"), 404}, {get("/api/chat/avatar/.."), 400}, {get("/metrics"), 404}, {get("/projection"), 404},
		{get("/api/donate/status?id=nobody"), 404}, {strings.Replace(get("/api/legit"), "GET", "DELETE", 1), 405},
		{strings.Replace(get("/api/legit"), "Host", "Registry-Min-Sequence: x\r\nHost", 1), 400},
		{strings.Replace(get("/api/legit"), "Host", "X: "+strings.Repeat("x", 40<<10)+"\r\nHost", 1), 431},
		{"GET /api/legit HTTP/1.1\r\n\r\n", 400}, {"nonsense\r\n\r\n", 400}, {"\x16\x03\x01\x02\x00\x01\x00", 0},
		{"POST /api/check HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
		{"GET /api/legit HTTP/1.1\r\nHost: a\r\nX-Half", -1}, {"POST /api/check HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nslow", -1}, {"", -1},
	}
}

// attack sends hostile requests to the living replica until ctx ends.
func (s *stage) attack(ctx context.Context) error {
	all := hostiles()
	for pause.For(ctx, between(s.hostileRNG, 20*time.Millisecond, 400*time.Millisecond)) {
		h := all[s.hostileRNG.IntN(len(all))]
		if err := h.send(ctx, strings.TrimPrefix(s.living.HTTP, "http://"), s.hostileRNG); err != nil && ctx.Err() == nil {
			s.report.fail("a hostile request: %v", err)
		}
		s.report.count("hostile requests")
	}
	return nil
}

// send makes the request. It holds a request that never ends for a moment and drops it.
func (h hostile) send(ctx context.Context, addr string, rng *rand.Rand) error {
	conn, err := net.DialTimeout("tcp", addr, registrytest.AskWithin)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(registrytest.AskWithin)); err != nil {
		return err
	}
	_, _ = conn.Write([]byte(h.request)) // the server may hang up before its end
	if h.status < 0 {
		pause.For(ctx, between(rng, 0, time.Second))
		return nil
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if h.status > 0 && !strings.HasPrefix(line, fmt.Sprintf("HTTP/1.1 %d ", h.status)) {
		return fmt.Errorf("%.60q was answered with %q (%v), not %d", h.request, line, err, h.status)
	}
	return nil
}
