//go:build unix && !race

package nights

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
)

// forget says that what a server holds is lost.
func (s *server) forget() { s.memory = newMemory() }

func (n *night) loseDir(s *server) {
	n.kill(s)
	n.must(os.RemoveAll(s.data))
	s.forget()
}

// loseStore removes or damages a server's store. The file beside it says what it had.
func (n *night) loseStore(a, b int) {
	s := n.server(a)
	n.kill(s)
	path := filepath.Join(s.data, "registry.db")
	if info, err := os.Stat(path); err == nil {
		if b%2 == 0 {
			n.must(os.Remove(path))
		} else {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			n.must(err)
			_, err = f.WriteAt(make([]byte, info.Size()-4096), 4096)
			n.must(err)
			n.must(f.Close())
		}
		s.owes = true
	}
	n.start(s)
}

// stumble kills a server soon after it has been started. A store that is being loaded then counts as
// damaged.
func (n *night) stumble(a, b int) {
	s := n.server(a)
	n.kill(s)
	for range 1 + b%3 {
		n.launch(s)
		select {
		case <-s.Ended():
		case <-time.After(time.Duration(b%70) * time.Millisecond): // any moment is one to be killed at
		}
		n.kill(s)
	}
	s.owes = true
	n.start(s)
}

// loseAll loses everything but files.
func (n *night) loseAll() {
	for _, s := range n.servers {
		n.loseDir(s)
	}
	if n.shared {
		n.broker.Shutdown()
		n.must(os.RemoveAll(n.brokerDir()))
		n.startBroker()
	}
	for _, s := range n.servers {
		n.start(s)
	}
}

func (n *night) loseStream() {
	if n.shared {
		_ = n.withStream(func(ctx context.Context, js jetstream.JetStream) error {
			return js.DeleteStream(ctx, events.DefaultStream)
		})
		return
	}
	n.withoutBroker(func() {
		n.must(os.RemoveAll(filepath.Join(n.brokerDir(), "jetstream", "$G", "streams", events.DefaultStream)))
	})
}

// purge erases a subject, or everything.
func (n *night) purge(a, b int) {
	if !n.hasBroker() || len(n.sent) == 0 || !n.stream().exists {
		return
	}
	var only []jetstream.StreamPurgeOpt
	if a%3 > 0 {
		only = append(only, jetstream.WithPurgeSubject(n.sent[b%len(n.sent)].Subject().String()))
	}
	n.must(n.withStream(func(ctx context.Context, js jetstream.JetStream) error {
		s, err := js.Stream(ctx, events.DefaultStream)
		if err != nil {
			return err
		}
		return s.Purge(ctx, only...)
	}))
	n.forgetReaders() // a server with an empty directory cannot know of it
}

// image copies everything while nothing runs.
func (n *night) image() {
	i := image{dir: n.path("image")}
	var ran []*server
	for _, s := range slices.Backward(n.servers) {
		if n.kill(s) {
			ran = append(ran, s)
		}
	}
	if n.shared {
		n.broker.Shutdown()
		n.copyDir(n.brokerDir(), filepath.Join(i.dir, "broker"))
	}
	for _, s := range n.servers {
		if _, err := os.Stat(s.data); err == nil {
			n.copyDir(s.data, filepath.Join(i.dir, s.name))
		}
		i.servers = append(i.servers, s.clone())
	}
	n.images = append(n.images, i)
	n.startBroker()
	for _, s := range slices.Backward(ran) {
		n.start(s)
	}
}

// backOf puts one server's directory back from an image.
func (n *night) backOf(i image, s *server) {
	k := slices.Index(n.servers, s)
	n.must(os.RemoveAll(s.data))
	if from := filepath.Join(i.dir, s.name); exists(from) {
		n.copyDir(from, s.data)
	}
	s.memory = i.servers[k].clone()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// rewind puts the broker's directory back from an image.
func (n *night) rewind(a, b int) {
	if len(n.images) == 0 {
		return
	}
	from := filepath.Join(n.images[b%len(n.images)].dir, strings.TrimPrefix(n.brokerDir(), n.dir))
	if !exists(from) {
		return
	}
	n.withoutBroker(func() { n.copyDir(from, n.brokerDir()) })
}

// imageBack puts a server's directory back, or everything. Where a broker comes back together with
// its server, nothing can notice that from inside, so the operator begins a new history.
func (n *night) imageBack(a, b int) {
	if len(n.images) == 0 {
		return
	}
	i, s := n.images[b%len(n.images)], n.server(a)
	all := n.shared && b%2 == 0 || n.embeds(s)
	if !all {
		n.kill(s)
		n.backOf(i, s)
		n.start(s)
		return
	}
	for _, s := range n.servers {
		if n.shared || n.embeds(s) {
			n.kill(s)
			n.backOf(i, s)
		}
	}
	if n.shared {
		n.broker.Shutdown()
		n.copyDir(filepath.Join(i.dir, "broker"), n.brokerDir())
		n.startBroker()
	}
	for _, s := range n.servers {
		n.start(s)
	}
	s = n.servers[0]
	n.await("the server is there", func() error {
		if now, err := n.projection(s); !s.running() || n.ready(s) || err == nil && now.LastError != nil {
			return nil
		}
		return fmt.Errorf("%s is not", s.name)
	})
	if !n.recover(s, "--new-history") {
		n.forgetReaders()
	}
}

// forgetReaders makes the readers of the feed begin again.
func (n *night) forgetReaders() {
	n.reader = reader{}
	for _, s := range n.servers {
		s.reader = reader{}
	}
}

func (n *night) ready(s *server) bool {
	if !s.running() {
		return false
	}
	a, err := registrytest.Ask(n.ctx, s.Admin+"/readyz", nil)
	return err == nil && a.Status == http.StatusOK
}

func (n *night) rebuild(a, b int) {
	s := n.server(a)
	if !n.ready(s) || !n.hasBroker() {
		return
	}
	now, err := n.projection(s)
	n.must(err)
	_, err = n.run(s, "rebuild", "--yes")
	if (err == nil) != (now.Frozen == nil) {
		n.fail("%s is frozen by %q, and a rebuild ends with %v", s.name, deref(now.Frozen), err)
	}
}

// snapshot puts a snapshot into the bucket, if there is one.
func (n *night) snapshot(s *server) {
	if n.ready(s) && n.hasBroker() {
		_, _ = n.run(s, "snapshot", "create")
	}
}

// newestSnapshot returns what a server with an empty directory begins with.
func (n *night) newestSnapshot() states {
	if !n.hasBroker() || !n.stream().exists {
		return states{}
	}
	list, err := n.run(nil, "snapshot", "list")
	name := regexp.MustCompile(`(?m)^REGISTRY\S+`).FindString(list)
	if err != nil || name == "" || n.recreated.share(n.stream().histories) { // or it is of another history
		return states{}
	}
	out, err := n.run(nil, "export", name)
	n.must(err)
	all, err := parseStates([]byte(out))
	n.must(err)
	return all
}

func (n *night) file(s *server) {
	if !n.ready(s) || len(s.known) == 0 {
		return
	}
	f := archive{n.path("file"), s.clone()}
	f.owes = false
	if _, err := n.run(s, "snapshot", "create", "--output="+f.path); err != nil {
		n.fail("%w", err)
	}
	n.files = append(n.files, f)
}

func (n *night) restore(a, b int) {
	if len(n.files) == 0 {
		return
	}
	s, f := n.server(a), n.files[b%len(n.files)]
	n.kill(s)
	if _, err := n.run(nil, "snapshot", "restore", f.path, "--force", "--data-dir="+s.data); err != nil {
		n.fail("%w", err)
	}
	s.memory, s.reader = f.clone(), reader{} // an older server, which may be frozen
	n.start(s)
}

// tombstones is the operator's timer.
func (n *night) tombstones(s *server) {
	if !n.ready(s) {
		return
	}
	before, _ := os.ReadFile(n.removed.path)
	_, err := n.run(s, "tombstones", "--output="+n.removed.path)
	after, _ := os.ReadFile(n.removed.path)
	if before != nil && !n.removed.histories.share(s.histories) {
		if err == nil || string(after) != string(before) {
			n.fail("tombstones of another history replace %s", n.removed.path)
		}
		return
	}
	if err != nil {
		n.fail("%w", err)
	}
	now, err := parseStates(after)
	n.must(err)
	for _, d := range s.known {
		switch d.(type) {
		case events.Delisting, events.DonationRemoval:
			n.removed.known.add(d)
		}
	}
	if less := n.removed.known.lacking(now); len(less) > 0 {
		n.fail("the tombstones lack %s", strings.Join(less, "; "))
	}
	n.removed.known.join(now)
	n.removed.histories.add(s.histories)
}

// recover is registry recover at a server. It reports whether there was one to run it at.
func (n *night) recover(s *server, flags ...string) bool {
	if !n.ready(s) || !n.hasBroker() {
		return false
	}
	n.recovers(s, s.clone(), append([]string{"recover", "--yes", "--create-stream"}, flags...)...)
	return true
}

// recoverFile is registry recover with a file, and the tombstones if there are any.
func (n *night) recoverFile(a, b int) {
	if len(n.files) == 0 || !n.hasBroker() {
		return
	}
	f := n.files[b%len(n.files)]
	f.memory = f.clone()
	if _, err := n.run(nil, "recover", f.path, "--yes", "--create-stream"); err == nil {
		n.fail("recover takes a file and does not ask who was delisted since")
	}
	args := []string{"recover", f.path, "--yes", "--create-stream"}
	switch {
	case !exists(n.removed.path):
		args = append(args, "--without-tombstones")
	case n.removed.histories.share(f.histories):
		args = append(args, "--tombstones="+n.removed.path)
		f.known.join(n.removed.known)
	default:
		if _, err := n.run(nil, append(args, "--tombstones="+n.removed.path)...); err == nil {
			n.fail("recover takes tombstones of another history")
		}
		args = append(args, "--without-tombstones")
	}
	n.recovers(nil, f.memory, args...)
}

// recovers runs a recover. What is foreign is refused, and then, since it is the operator's own,
// adopted.
func (n *night) recovers(s *server, from memory, args ...string) {
	before := n.stream()
	_, err := n.run(s, args...)
	if err != nil && len(from.known) == 0 && strings.Contains(err.Error(), "no events yet") {
		return
	}
	if before.messages > 0 && !from.histories.share(before.histories) {
		if after := n.stream(); err == nil || after.last != before.last {
			n.fail("recover takes what is foreign")
		}
		adopt := regexp.MustCompile(`--adopt[ =](\S+)`).FindStringSubmatch(err.Error())
		if adopt == nil {
			n.fail("recover does not say how to adopt: %w", err)
		}
		_, err = n.run(s, append(args, "--adopt="+strings.Trim(adopt[1], ".,;)"))...)
	}
	if err != nil {
		n.fail("%w", err)
	}
	after := n.stream()
	if less := from.known.lacking(after.states); len(less) > 0 {
		n.fail("recover has left out: %s", strings.Join(less, "; "))
	}
	if s != nil {
		s.histories.add(after.histories)
	}
	for _, other := range n.servers {
		if other.owes { // a marker ends that
			other.known = states{}
		}
	}
}

// acceptLoss starts a server that will not be ready as its own words say, which may change once its
// stream is there.
func (n *night) acceptLoss(s *server) {
	if n.ready(s) || !n.hasBroker() || s.said == "" && s.Server == nil {
		return
	}
	accepted := ""
	n.await(s.name+" says how to accept the loss", func() error {
		if s.Server != nil && s.Exited() {
			if err := n.lookAtTheEnd(s); err != nil {
				return err
			}
		}
		said := s.said
		if s.Server != nil {
			now, err := n.projection(s)
			if err != nil || n.ready(s) {
				return err
			}
			said = deref(now.LastError)
		}
		if epoch := regexp.MustCompile(`--accept-loss[ =]([A-Za-z0-9]+)`).FindStringSubmatch(said); epoch != nil && epoch[1] != accepted {
			accepted = epoch[1]
			n.kill(s)
			n.start(s, "--accept-loss="+accepted)
		}
		return fmt.Errorf("%s %s", said, s.Tail())
	})
	if accepted != "" {
		s.forget()
	}
}

// outsider is another registry.
type outsider struct {
	*registrytest.Server
	dir, file string
}

var theOutsider outsider

func endOutsider() error {
	if theOutsider.Server == nil {
		return nil
	}
	theOutsider.End(os.Kill)
	return os.RemoveAll(theOutsider.dir)
}

var startOutsider = sync.OnceValues(func() (o outsider, err error) {
	if o.dir, err = os.MkdirTemp("", "registry-outsider"); err != nil {
		return o, err
	}
	n := &night{ctx: context.Background(), dir: o.dir, ledger: map[string]bool{}}
	n.prepare()
	s := n.add("A", newMemory())
	n.start(s)
	n.serial = 5000
	n.publish(7, 0)
	n.judge()
	n.file(s)
	o.Server, o.file = s.Server, n.files[0].path
	o.NATS = n.url
	theOutsider = o
	return o, nil
})

// stranger confuses this registry with another one.
func (n *night) stranger(a, b int) {
	s := n.server(b)
	if !n.hasBroker() {
		return
	}
	before := n.stream()
	if before.messages == 0 {
		return // foreign to nobody
	}
	o, err := startOutsider()
	n.must(err)
	strange := &server{Server: o.Server}
	switch {
	case a%3 == 0:
		_, err = n.run(strange, "recover", "--yes")
	case a%3 == 1:
		_, err = n.run(nil, "recover", o.file, "--without-tombstones", "--yes")
	case n.ready(s) && len(s.histories) > 0:
		_, err = n.run(s, "recover", "--yes", "--nats-url="+o.NATS)
	default:
		return
	}
	if after := n.stream(); err == nil || before.last != after.last {
		n.fail("recover mixes two registries")
	}
}

// clone makes a test system from an image, which forgets no step, and confuses the two.
func (n *night) clone(a, b int) {
	if len(n.images) == 0 || !n.hasBroker() || n.stream().messages == 0 {
		return
	}
	i := n.images[b%len(n.images)]
	test := &night{ctx: n.ctx, dir: n.path("clone"), shared: n.shared, ledger: maps.Clone(n.ledger), serial: 7000}
	n.copyDir(i.dir, test.dir)
	test.prepare()
	s := test.add("A", i.servers[0].clone())
	test.startBroker()
	defer func() {
		n.told = append(n.told, test.told...)
		test.kill(s)
		if test.broker != nil {
			test.broker.Shutdown()
		}
	}()
	test.start(s)
	if len(s.histories) == 0 {
		return
	}
	test.judge()
	if now, err := test.projection(s); err != nil || now.Frozen != nil || !test.ready(s) {
		return
	}
	if _, err := test.run(s, "recover", "--fork", "--yes"); err != nil {
		n.fail("%w", err)
	}
	s.histories = names{}
	r := rand.New(rand.NewPCG(uint64(a), uint64(b)))
	test.send(test.state(r), test.state(r), test.state(r))
	test.judge()
	before := n.stream()
	if _, err := n.run(s, "recover", "--yes"); err == nil || n.stream().last != before.last {
		n.fail("a test system is recovered into production")
	}
}

// morning starts what is down and runs recover at every server that is left, as often as it takes.
func (n *night) morning() {
	n.tell("morning")
	for _, s := range n.servers {
		n.start(s)
	}
	n.judge()
	for range 2 {
		for _, s := range n.servers {
			n.recover(s)
			n.judge()
		}
		for _, s := range n.servers {
			n.start(s)
			n.judge()
			n.acceptLoss(s)
			n.judge()
		}
	}
	before := n.stream()
	var digest string
	for _, s := range n.servers {
		if !n.recover(s) {
			n.fail("%s is not ready in the morning", s.name)
		}
		now, err := n.projection(s)
		n.must(err)
		if now.Frozen != nil || now.Rewound || now.LastError != nil || *now.Unpublished > 0 {
			n.fail("%s in the morning: %+v: %s", s.name, now, deref(now.LastError))
		}
		if digest == "" {
			digest = now.Digest
		}
		if now.Digest != digest {
			n.fail("%s differs", s.name)
		}
		if _, err := n.run(s, "verify"); err != nil {
			n.fail("%w", err)
		}
	}
	if after := n.stream(); after.last != before.last {
		n.fail("a recover more publishes from %d to %d", before.last, after.last)
	}
}
