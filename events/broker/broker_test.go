package broker

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started runs a broker for the test.
func started(t *testing.T, cfg Config) *Broker {
	t.Helper()
	if cfg.StoreDir == "" {
		cfg.StoreDir = t.TempDir()
	}
	b, err := Start(cfg)
	require.NoError(t, err)
	t.Cleanup(b.Shutdown)
	return b
}

// useStream stores a message through nc and reads it back.
func useStream(t *testing.T, nc *nats.Conn) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage})
	require.NoError(t, err)
	ack, err := js.Publish(ctx, "s", []byte("x"))
	require.NoError(t, err)
	_, err = s.GetMsg(ctx, ack.Sequence)
	require.NoError(t, err)
}

func internal(t *testing.T, b *Broker) *nats.Conn {
	t.Helper()
	nc, err := b.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func TestWithoutAListener(t *testing.T) {
	for _, cfg := range []Config{{Addr: ""}, {Addr: "-"}, {Addr: "-", ConfigFile: config(t, twoUsers)}} {
		b := started(t, cfg)
		useStream(t, internal(t, b))
		if b.ClientURL() != "" || b.srv.Addr() != nil {
			t.Error("an address without a listener:", b.ClientURL())
		}
	}
}

func TestListensOnAFreePort(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		b := started(t, Config{Addr: addr})
		nc, err := nats.Connect(b.ClientURL())
		require.NoError(t, err, "%s listens at %s", addr, b.ClientURL())
		useStream(t, nc)
		nc.Close()
		if host, port, err := net.SplitHostPort(b.srv.Addr().String()); err != nil || port == "0" || net.ParseIP(host) == nil {
			t.Errorf("%s: address %q", addr, b.ClientURL())
		}
	}
}

// What was acknowledged is there after a restart on the same directory.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	for run := range 3 {
		b := started(t, Config{StoreDir: dir, Addr: "127.0.0.1:0"})
		nc := internal(t, b)
		useStream(t, nc)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		s, err := js.Stream(t.Context(), "S")
		require.NoError(t, err)
		if n := s.CachedInfo().State.Msgs; n != uint64(run+1) {
			t.Errorf("run %d: %d messages", run, n)
		}
		nc.Close()
		b.Shutdown()
		b.Shutdown()
	}
}

// An error is one line that names what to change, and leaves nothing running (goleak).
func TestStartRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	broken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, "jetstream"), []byte("x"), 0o600))
	for _, c := range []struct {
		cfg     Config
		problem string
	}{
		{Config{Addr: "-"}, "no directory"},
		{Config{StoreDir: file}, "not a directory"},
		{Config{StoreDir: filepath.Join(file, "below")}, "not a directory"},
		{Config{StoreDir: broken}, "Can't start JetStream"},
		{Config{StoreDir: t.TempDir(), Addr: "4222"}, "is not host:port"},
		{Config{StoreDir: t.TempDir(), Addr: "127.0.0.1:nats"}, "the port is not a number"},
		{Config{StoreDir: t.TempDir(), Addr: "127.0.0.1:65536"}, "the port is not a number"},
		{Config{StoreDir: t.TempDir(), Addr: "0.0.0.0:0"}, "not a loopback address"},
		{Config{StoreDir: t.TempDir(), Addr: ":0"}, "not a loopback address"},
		{Config{StoreDir: t.TempDir(), Addr: "[::]:0"}, "not a loopback address"},
		{Config{StoreDir: t.TempDir(), Addr: "registry.example:0"}, "not a loopback address"},
		{Config{StoreDir: t.TempDir(), ConfigFile: file + ".conf"}, "no such file"},
		{Config{StoreDir: t.TempDir(), ConfigFile: file}, "defines no users"},
	} {
		t.Run(c.problem, func(t *testing.T) { fails(t, c.cfg, c.problem) })
	}
}

// fails wants Start to fail with one line that says problem.
func fails(t *testing.T, cfg Config, problem string) {
	t.Helper()
	b, err := Start(cfg)
	if err == nil {
		b.Shutdown()
		t.Errorf("%+v: started, want %q", cfg, problem)
		return
	}
	if text := err.Error(); !strings.HasPrefix(text, "embedded broker: ") || !strings.Contains(text, problem) || strings.Contains(text, "\n") {
		t.Errorf("%+v: %v, want %q", cfg, err, problem)
	}
}

// A taken port is noticed before the store is touched: it may be another server's.
func TestTakenPortLeavesTheStoreAlone(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	fails(t, Config{StoreDir: dir, Addr: taken.Addr().String()}, "address already in use")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDurableUnlessToldOtherwise(t *testing.T) {
	for unsafe, want := range map[bool]bool{false: true, true: false} {
		opts, _, err := makeOptions(Config{StoreDir: t.TempDir(), UnsafeNoSync: unsafe})
		if err != nil || opts.SyncAlways != want || !opts.NoSigs {
			t.Errorf("UnsafeNoSync %v: %+v, %v", unsafe, opts, err)
		}
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	if got := storeLimit(dir); got < minStore || got > maxStore {
		t.Error("store limit", got)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), make([]byte, 1234), 0o600))
	if got := usedBytes(dir); got != 1234 {
		t.Error("used", got)
	}
}

// The server's log reaches slog, and says what was fatal instead of ending the process.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(t.TempDir(), "log")) // the server's goroutines may still write when it is read
	require.NoError(t, err)
	defer out.Close()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jetstream"), nil, 0o600))
	fails(t, Config{StoreDir: dir, Logger: slog.New(slog.NewTextHandler(out, nil))}, "Can't start JetStream")
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	require.Regexp(t, `level=ERROR msg="embedded broker" report=`, string(text))
}

// A problem counts once it has been found twice in a row: a stream's directory is there before the
// stream is. The streams of an account that the configuration does not have are passed over.
func TestHealth(t *testing.T) {
	dir := t.TempDir()
	lost := filepath.Join(dir, "jetstream", "$G", "streams", "S")
	require.NoError(t, os.MkdirAll(lost, 0o700))
	b := started(t, Config{StoreDir: dir, UnsafeNoSync: true})
	require.NoError(t, b.Health())
	require.ErrorContains(t, b.Health(), "S' could not be recovered")
	useStream(t, internal(t, b)) // makes S
	require.NoError(t, b.Health())
	require.NoError(t, b.Health())
	b.Shutdown()

	accounts := config(t, `accounts { REGISTRY: {jetstream: true, users: [{user: a, password: a}]} }`)
	b = started(t, Config{StoreDir: dir, UnsafeNoSync: true, ConfigFile: accounts})
	for range 2 {
		require.NoError(t, b.Health())
	}
}
