//go:build unix && !race

package nights

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/pause"
)

// night is a night under way.
type night struct {
	ctx     context.Context
	dir     string
	shared  bool
	url     string                  // of the broker
	begin   func() (shutter, error) // starts it, if it is shared
	broker  shutter
	servers []*server
	copies  int // counts what has to have a name of its own

	serial    int64
	sent      []events.Data   // by the backend, with any result
	ledger    map[string]bool // the same, by what is compared
	images    []image
	files     []archive
	removed   archive // the file of tombstones
	recreated names   // the epoch of a stream that was made by hand
	reader    reader  // of whichever server
	told      []string
}

// server is a data directory and, while it runs, its process.
type server struct {
	*registrytest.Server
	name, data string
	memory
	said   string // last, if it has ended by itself
	reader reader
}

// memory is what a data directory or a file has held since it was lost or replaced.
type memory struct {
	known     states
	histories names
	stream    map[uint64]time.Time // messages of the stream, when all of it had been read
	owes      bool                 // the store was lost or damaged: the server may wait for as much as it had
}

func newMemory() memory { return memory{known: states{}, histories: names{}} }

func (m memory) clone() memory {
	m.known, m.histories = maps.Clone(m.known), maps.Clone(m.histories)
	return m
}

// archive is a file, with what is known to be in it.
type archive struct {
	path string
	memory
}

// image is a copy of everything: the broker's directory and those of the servers.
type image struct {
	dir     string
	servers []memory
}

// states are the true states of subjects.
type states map[events.Subject]events.Data

// add joins a state.
func (s states) add(d events.Data) {
	if is := s[d.Subject()]; is == nil || events.Compare(d, is) > 0 {
		s[d.Subject()] = d
	}
}

func (s states) join(other states) {
	for _, d := range other {
		s.add(d)
	}
}

// lacking returns the subjects that other has less of than s.
func (s states) lacking(other states) (all []string) {
	for subject, d := range s {
		if is := other[subject]; is == nil || events.Compare(is, d) < 0 {
			all = append(all, fmt.Sprintf("%s: has %s, lacks %s", subject, text(is), text(d)))
		}
	}
	slices.Sort(all)
	return all
}

// text returns a state as it is compared.
func text(d events.Data) string {
	if d == nil {
		return "nothing"
	}
	return fmt.Sprintf("%T %s", d, events.AppendData(nil, d))
}

// names are those of histories.
type names map[string]bool

func (n names) add(other names) { maps.Copy(n, other) }

func (n names) share(other names) bool {
	for name := range other {
		if n[name] {
			return true
		}
	}
	return false
}

// fault is the end of a night that goes wrong.
type fault struct{ error }

// errHarness is a fault of the test itself.
var errHarness = errors.New("the test itself")

func (n *night) fail(format string, args ...any) { panic(fault{fmt.Errorf(format, args...)}) }

func (n *night) must(err error) {
	if err != nil {
		panic(fault{fmt.Errorf("%w: %w", errHarness, err)})
	}
}

func (n *night) tell(format string, args ...any) {
	n.told = append(n.told, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// play plays a night in a directory, to the next morning.
func play(dir string, p plan) (told []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	n := &night{ctx: ctx, shared: p.shared || *natsServer != "", ledger: map[string]bool{}}
	defer func() {
		told = n.told
		for _, s := range n.servers {
			if s.running() {
				s.End(os.Kill)
			}
		}
		if n.broker != nil {
			n.broker.Shutdown()
		}
		switch f := recover().(type) {
		case nil:
		case fault:
			err = f.error
		default:
			err = fmt.Errorf("%w: %v\n%s", errHarness, f, debug.Stack())
		}
	}()
	n.dir, err = os.MkdirTemp(dir, "night")
	n.must(err)
	n.prepare()
	n.removed = archive{filepath.Join(n.dir, "tombstones.ndjson"), newMemory()}
	for i := range p.servers {
		n.add(string(rune('A'+i)), newMemory())
	}
	n.startBroker()
	for _, s := range n.servers {
		n.start(s)
	}
	for _, step := range p.steps {
		n.tell("%s %d %d", step.name, step.a, step.b)
		steps()[step.name](n, step.a, step.b)
		n.judge()
	}
	n.morning()
	return nil, nil
}

// add adds a server that does not run yet.
func (n *night) add(name string, m memory) *server {
	s := &server{name: name, data: filepath.Join(n.dir, name), memory: m}
	n.servers = append(n.servers, s)
	return s
}

func (n *night) server(a int) *server { return n.servers[a%len(n.servers)] }

func (s *server) running() bool { return s.Server != nil && !s.Exited() }

// embeds reports whether the broker is in s.
func (n *night) embeds(s *server) bool { return !n.shared && s == n.servers[0] }

// brokerDir returns the broker's directory.
func (n *night) brokerDir() string {
	if n.shared {
		return filepath.Join(n.dir, "broker")
	}
	return filepath.Join(n.servers[0].data, "broker")
}

// path returns a new path.
func (n *night) path(what string) string {
	n.copies++
	return filepath.Join(n.dir, fmt.Sprint(what, n.copies))
}

// prepare finds addresses for the broker.
func (n *night) prepare() {
	if n.shared {
		var err error
		n.begin, n.url, err = brokerAt(n.brokerDir())
		n.must(err)
		return
	}
	address, err := eventstest.Address()
	n.must(err)
	n.url = "nats://" + address
}

func (n *night) startBroker() {
	if n.shared {
		n.must(eventually(n.ctx, func() (err error) {
			n.broker, err = n.begin()
			return err
		}))
	}
}

// eventually tries something until it succeeds, for a time.
func eventually(ctx context.Context, do func() error) (err error) {
	_, late := registrytest.Await(ctx, "", func() bool { err = do(); return err == nil })
	if late == nil {
		return nil
	}
	return err
}

// withoutBroker does something while the broker is down, which is a server where it is embedded.
func (n *night) withoutBroker(do func()) {
	if !n.shared {
		ran := n.kill(n.servers[0])
		do()
		if ran {
			n.start(n.servers[0])
		}
		return
	}
	n.broker.Shutdown()
	do()
	n.startBroker()
}

// command returns "registry serve" for a server.
func (n *night) command(s *server, flags ...string) *exec.Cmd {
	flags = append([]string{"--data-dir=" + s.data, "--ranked-index=false", "--site=false"}, flags...)
	if n.embeds(s) {
		flags = append(flags, "--embedded-nats-addr="+strings.TrimPrefix(n.url, "nats://"))
	} else {
		flags = append(flags, "--nats-url="+n.url, fmt.Sprint("--stream-replicas=", *natsNodes))
	}
	return registrytest.Command(registry, flags...)
}

// launch starts a server's process and waits for nothing.
func (n *night) launch(s *server, flags ...string) {
	var err error
	s.Server, err = registrytest.Start(n.command(s, flags...), filepath.Join(n.dir, s.name+".log"), nil)
	n.must(err)
}

// start starts a server and waits until it listens. What it says then is the judge's.
func (n *night) start(s *server, flags ...string) {
	if s.running() {
		return
	}
	if s.said = ""; len(s.histories) == 0 {
		s.known = n.newestSnapshot()
	}
	n.launch(s, flags...)
	_ = s.WaitListening(n.ctx) // it may have ended
	if n.embeds(s) {
		n.must(eventually(n.ctx, func() error {
			err := n.withStream(func(ctx context.Context, js jetstream.JetStream) error { _, err := js.AccountInfo(ctx); return err })
			if s.Exited() {
				return nil
			}
			return err
		}))
	}
}

func (n *night) kill(s *server) (ran bool) {
	ran = s.running()
	if ran {
		s.End(os.Kill)
	}
	s.Server = nil
	return ran
}

func (n *night) stop(s *server) {
	if !s.running() {
		return
	}
	if status := s.End(syscall.SIGTERM); status != 0 {
		n.fail("%s: exit status %d: %s", s.name, status, s.Tail())
	}
	s.Server = nil
}

// run runs a command to a server, which may be nil, and the broker. It is refused while the server
// makes a snapshot by itself.
func (n *night) run(s *server, args ...string) (out string, err error) {
	_, late := registrytest.Await(n.ctx, "", func() bool {
		out, err = n.runOnce(s, args...)
		return err == nil || !strings.Contains(err.Error(), "is being made")
	})
	n.must(late)
	return out, err
}

func (n *night) runOnce(s *server, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(n.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, registry, args...)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "REGISTRY_NATS_URL="+n.url, fmt.Sprint("REGISTRY_STREAM_REPLICAS=", *natsNodes))
	admin := "127.0.0.1:1" // nobody
	if s != nil {
		admin = s.AdminAddr()
	}
	cmd.Env = append(cmd.Env, "REGISTRY_ADMIN_ADDR="+admin)
	var out, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		n.fail("registry %v does not end: %s%s", args, out.String(), complaint.String())
	case err != nil:
		err = fmt.Errorf("registry %v: %w: %s", args, err, strings.TrimSpace(complaint.String()))
	}
	n.tell("registry %v: %s%v", args, strings.TrimSpace(out.String()), err)
	return out.String(), err
}

// withStream does something with the broker's streams.
func (n *night) withStream(do func(ctx context.Context, js jetstream.JetStream) error) error {
	ctx, cancel := context.WithTimeout(n.ctx, 5*time.Second)
	defer cancel()
	nc, err := nats.Connect(n.url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return do(ctx, js)
}

// hasBroker reports whether the broker runs.
func (n *night) hasBroker() bool { return n.shared || n.servers[0].running() }

// copyDir copies a directory, in which a broker that has just stopped may still remove files.
func (n *night) copyDir(from, to string) {
	n.must(eventually(n.ctx, func() error {
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		return os.CopyFS(to, os.DirFS(from))
	}))
}

// await tries something until it succeeds, which has to come about.
func (n *night) await(what string, is func() error) {
	var last error
	for ctx, cancel := context.WithTimeout(n.ctx, patience); ; {
		if last = is(); last == nil {
			cancel()
			return
		}
		if !pause.For(ctx, 20*time.Millisecond) {
			cancel()
			n.fail("%s: %w", what, last)
		}
	}
}

// patience bounds every wait. A server compares itself with its stream once a minute.
const patience = 75 * time.Second
