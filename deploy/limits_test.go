package deploy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// commands finds the commands with a flag in the program's own help, so that a new command cannot be
// forgotten.
func commands(t *testing.T, flag string, group ...string) (with []string) {
	t.Helper()
	for line := range strings.Lines(output(t, registry, append(slices.Clone(group), "--help")...)) {
		name, isCommand := strings.CutPrefix(line, "  ")
		name, _, hasMore := strings.Cut(strings.TrimPrefix(name, strings.Join(group, " ")+" "), " ")
		if !isCommand || !hasMore || name == "" || strings.HasPrefix(name, "-") || !strings.Contains(line, "[flags]") {
			continue
		}
		command := append(slices.Clone(group), name)
		if strings.Contains(line, "<command>") {
			with = append(with, commands(t, flag, command...)...)
		} else if strings.Contains(output(t, registry, append(command, "--help")...), "--"+flag+"=") {
			with = append(with, strings.Join(command, " "))
		}
	}
	return with
}

// filter relays a client's connections to a broker, and takes the messages to some subjects away: they
// are refused, as the broker refuses what a user may not do, or never answered.
type filter struct {
	broker string // host:port
	refuse bool

	mu    sync.Mutex
	kinds map[string]bool // of all messages so far
	taken string          // the kind that is taken away; empty for none
}

// kind replaces what differs from run to run in a subject.
func kind(subject string) string {
	parts := strings.Split(subject, ".")
	at := slices.IndexFunc(parts, func(part string) bool { return strings.Contains(part, "REGISTRY") })
	switch {
	case strings.HasPrefix(subject, "$JS.API.") && at > 0:
		return strings.Join(parts[:at+1], ".")
	case strings.HasPrefix(subject, "$O."):
		return strings.Join(parts[:3], ".")
	}
	return parts[0]
}

// start listens until the test ends, and returns the address for clients.
func (f *filter) start(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { f.relay(t.Context(), client) })
		}
	})
	return "nats://" + listener.Addr().String()
}

func (f *filter) relay(ctx context.Context, client net.Conn) {
	defer client.Close()
	broker, err := net.Dial("tcp", f.broker)
	if err != nil {
		return
	}
	defer broker.Close()
	defer context.AfterFunc(ctx, func() { client.Close(); broker.Close() })()
	var mu sync.Mutex // of what is written to the client
	var down sync.WaitGroup
	down.Go(func() {
		defer client.Close()
		for in := bufio.NewReader(broker); ; {
			frame, _, err := read(in)
			mu.Lock()
			_, werr := client.Write(frame)
			mu.Unlock()
			if err != nil || werr != nil {
				return
			}
		}
	})
	defer down.Wait()
	defer broker.Close()
	for in := bufio.NewReader(client); ; {
		frame, subject, err := read(in)
		if err != nil {
			return
		}
		if subject != "" && f.takes(subject) {
			if f.refuse {
				mu.Lock()
				fmt.Fprintf(client, "-ERR 'Permissions Violation for Publish to %q'\r\n", subject)
				mu.Unlock()
			}
			continue
		}
		if _, err := broker.Write(frame); err != nil {
			return
		}
	}
}

func (f *filter) takes(subject string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds[kind(subject)] = true
	return kind(subject) == f.taken
}

// read reads a line of the broker's protocol with the message that follows it, and returns the subject
// of what a client publishes.
func read(in *bufio.Reader) (frame []byte, subject string, err error) {
	if frame, err = in.ReadBytes('\n'); err != nil {
		return frame, "", err
	}
	words := strings.Fields(string(frame))
	if len(words) < 3 || !slices.Contains([]string{"PUB", "HPUB", "MSG", "HMSG"}, words[0]) {
		return frame, "", nil
	}
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return frame, "", err
	}
	if strings.HasSuffix(words[0], "PUB") {
		subject = words[1]
	}
	payload := make([]byte, size+2)
	_, err = io.ReadFull(in, payload)
	return append(frame, payload...), subject, err
}

// commandLimit is how long a command may wait for a broker that does not answer, on a busy machine.
const commandLimit = time.Minute

// No command waits without an end. Each is tried as often as it makes kinds of requests: one kind is
// refused, or never answered. The command then ends, and unless it needs no answer, with status 1
// and a line that names the right that the user lacks, or says that the broker does not answer.
func TestNoCommandWaitsForever(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	b := eventstest.Broker(t)
	js := eventstest.Connect(t, b)
	broker := strings.TrimPrefix(b.ClientURL(), "nats://")
	r := serve(t, "--nats-url="+b.ClientURL(), "--snapshot-every=0")
	await(t, r.Admin+"/readyz", "")
	eventstest.Publish(t, js, eventstest.Events(20, 1)...)
	eventstest.PublishRaw(t, js, "registry.scammers.bad", []byte("{}"))
	await(t, r.Admin+"/projection", `"rejected":1,`)
	snapshot, _, _ := strings.Cut(output(t, registry, "snapshot", "create", "--admin-addr="+r.AdminAddr()), ":")

	var runs atomic.Int64
	admin := "--admin-addr=" + r.AdminAddr()
	commandLine := map[string]func() []string{ // a state that each run finds as the first did
		"publish":          func() []string { return []string{newEvents(t, runs.Add(1))} },
		"verify":           func() []string { return []string{admin} },
		"recover":          func() []string { return []string{"--dry-run", admin} },
		"snapshot list":    func() []string { return nil },
		"snapshot verify":  func() []string { return []string{snapshot} },
		"snapshot restore": func() []string { return []string{snapshot, "--data-dir=" + filepath.Join(t.TempDir(), "new")} },
		"export":           func() []string { return []string{snapshot} },
		"rejected list":    func() []string { return nil },
		"streams create":   func() []string { return nil },
	}
	try := func(t *testing.T, command, taken string, refuse bool) (kinds map[string]bool, said string, err error) {
		f := &filter{broker: broker, refuse: refuse, kinds: map[string]bool{}, taken: taken}
		url := f.start(t)
		ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
		defer cancel()
		args := append(append(strings.Fields(command), commandLine[command]()...), "--nats-url="+url)
		text, err := exec.CommandContext(ctx, registry, args...).CombinedOutput()
		if ctx.Err() != nil {
			t.Errorf("%s: no end within %v where %s is not answered: %s", command, commandLimit, taken, text)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.kinds, string(text), err
	}
	for _, command := range commands(t, "nats-url") {
		if command == "serve" {
			continue // TestServerSaysWhatItWaitsFor
		}
		if commandLine[command] == nil {
			t.Errorf("%s: say here with which arguments it is to be tried", command)
			continue
		}
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			kinds, said, err := try(t, command, "", false)
			require.NoError(t, err, said)
			require.NotEmpty(t, kinds)
			for taken := range kinds {
				for _, refuse := range []bool{false, true} {
					t.Run(fmt.Sprint(taken, refuse), func(t *testing.T) {
						_, said, err := try(t, command, taken, refuse)
						var exit *exec.ExitError
						switch errors.As(err, &exit); {
						case err == nil: // an answer that it does not need
							t.Logf("%s needs no answer to %s", command, taken)
						case exit == nil || exit.ExitCode() != 1:
							t.Errorf("%v: %s", err, said)
						case refuse && !strings.Contains(said, "this user of the broker may not publish to "+taken):
							t.Errorf("%s is not named: %s", taken, said)
						case !refuse && !namesSilence(said):
							t.Errorf("the silence is not named: %s", said)
						}
					})
				}
			}
		})
	}
}

// recover is tried on a loss of its own each time, so that it publishes.
func TestRecoverDoesNotWaitForever(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	run := func(t *testing.T, taken string, refuse bool) map[string]bool {
		b := eventstest.Broker(t)
		js := eventstest.Connect(t, b)
		r := serve(t, "--nats-url="+b.ClientURL(), "--snapshot-every=0")
		await(t, r.Admin+"/readyz", "")
		eventstest.Publish(t, js, eventstest.Events(20, 1)...)
		await(t, r.Admin+"/projection", `"checkpoint":20,`)
		stream, err := js.Stream(t.Context(), events.DefaultStream)
		require.NoError(t, err)
		require.NoError(t, stream.Purge(t.Context()))
		f := &filter{broker: strings.TrimPrefix(b.ClientURL(), "nats://"), refuse: refuse, kinds: map[string]bool{}, taken: taken}
		ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
		defer cancel()
		text, err := exec.CommandContext(ctx, registry, "recover", "--yes", "--admin-addr="+r.AdminAddr(), "--nats-url="+f.start(t)).CombinedOutput()
		said := string(text)
		var exit *exec.ExitError
		switch errors.As(err, &exit); {
		case ctx.Err() != nil:
			t.Errorf("no end within %v where %s is not answered: %s", commandLimit, taken, said)
		case err == nil: // an answer that it does not need
		case taken == "" || exit == nil || exit.ExitCode() != 1:
			t.Errorf("%v: %s", err, said)
		case refuse && !strings.Contains(said, "this user of the broker may not publish to "+taken):
			t.Errorf("%s is not named: %s", taken, said)
		case !refuse && !namesSilence(said):
			t.Errorf("the silence is not named: %s", said)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return maps.Clone(f.kinds)
	}
	kinds := run(t, "", false)
	require.True(t, kinds["registry"], "nothing was published: %v", kinds)
	for taken := range kinds {
		for _, refuse := range []bool{false, true} {
			t.Run(fmt.Sprint(taken, refuse), func(t *testing.T) {
				t.Parallel()
				run(t, taken, refuse)
			})
		}
	}
}

// Nor does a command wait for a server that takes the connection and answers nothing.
func TestNoCommandWaitsForAServer(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	b := eventstest.Broker(t)
	eventstest.Stream(t, eventstest.Connect(t, b))
	orders := map[string][]string{}
	for _, command := range commands(t, "admin-addr") {
		if command != "serve" {
			orders[command] = []string{"--admin-addr=" + silent.Addr().String()}
		}
	}
	require.Greater(t, len(orders), 5)
	for _, command := range commands(t, "nats-url") {
		if orders[command] != nil {
			orders[command] = append(orders[command], "--nats-url="+b.ClientURL())
		}
	}
	for command, args := range orders {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
			defer cancel()
			said, err := exec.CommandContext(ctx, registry, append(strings.Fields(command), args...)...).CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(string(said), silent.Addr().String()) {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}

// namesSilence reports whether a text says that the broker does not answer.
func namesSilence(text string) bool {
	return strings.Contains(text, "not answer") || strings.Contains(text, "not delivered") || strings.Contains(text, "nats: timeout")
}

// No server waits without an end, either: with each kind of its requests refused, or never answered, it
// does all its work without, or its log or /projection names the right, or the silence; and it stops when
// it is told to.
func TestServerSaysWhatItWaitsFor(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	run := func(t *testing.T, taken string, refuse bool) map[string]bool {
		b := eventstest.Broker(t)
		js := eventstest.Connect(t, b)
		eventstest.Stream(t, js)
		evs := eventstest.Events(20, 1)
		gone := events.Delisting{Revision: 9, List: events.Scammers, EntryID: "x"}
		evs = append(evs, events.StateEvent(events.Revised(eventstest.Entries(1, 1)[0], 2)), events.StateEvent(gone), events.StateEvent(gone))
		evs[22].ID = "again"
		eventstest.Publish(t, js, evs...)
		eventstest.PublishRaw(t, js, "registry.scammers.bad", []byte("{}"))
		f := &filter{broker: strings.TrimPrefix(b.ClientURL(), "nats://"), refuse: refuse, kinds: map[string]bool{}, taken: taken}
		r := serve(t, "--nats-url="+f.start(t), "--snapshot-every=1s")
		until(t, func() string {
			_, _, body := get(t, r.Admin+"/projection", nil)
			return fmt.Sprintf("%s is taken away (refused: %v), and nothing says so: %s %s", taken, refuse, body, r.Log())
		}, func() bool {
			_, _, body := get(t, r.Admin+"/projection", nil)
			said := string(body) + r.Log()
			done := strings.Contains(r.Log(), "snapshot made")
			for _, part := range []string{`"checkpoint":24,`, `"rejected":1,`, `"waitingPurges":0`} {
				done = done && strings.Contains(string(body), part)
			}
			return done || taken != "" && (refuse && strings.Contains(said, "this user of the broker may not publish to "+taken) || !refuse && namesSilence(said))
		})
		f.mu.Lock()
		defer f.mu.Unlock()
		return maps.Clone(f.kinds)
	}
	for taken := range run(t, "", false) {
		for _, refuse := range []bool{false, true} {
			t.Run(fmt.Sprint(taken, refuse), func(t *testing.T) {
				t.Parallel()
				run(t, taken, refuse) // stopped at its end
			})
		}
	}
}

// newEvents writes events that no earlier call wrote.
func newEvents(t *testing.T, n int64) string {
	t.Helper()
	evs := eventstest.Events(20, 7)
	for i := range evs {
		evs[i].ID = events.NewEventID()
		evs[i].Data = events.Revised(evs[i].Data, 1000+n)
	}
	return writeEvents(t, evs)
}
