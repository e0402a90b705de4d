package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// errFull is Health's error for a stream on a full disk.
var errFull = errors.New("stream S write error: " + syscall.ENOSPC.Error())

// A new server takes the place of the old one, at its address, with its streams and its users;
// connections come back by themselves, the one through memory with its new password.
func TestRecover(t *testing.T) {
	for name, file := range map[string]string{"anybody": "", "users": config(t, users)} {
		t.Run(name, func(t *testing.T) {
			b := start(t, Config{Addr: "127.0.0.1:0", ConfigFile: file})
			addr, old := b.Addr(), b.current.Load()
			again := make(chan struct{}, 2)
			back := []nats.Option{nats.UserInfo("backend", "secret"), nats.ReconnectWait(time.Millisecond), nats.MaxReconnects(-1),
				nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} })}
			nc, err := b.Connect(back[1:]...)
			require.NoError(t, err)
			defer nc.Close()
			client, err := nats.Connect(b.ClientURL(), back...)
			require.NoError(t, err)
			defer client.Close()
			useStream(t, nc)
			if !b.Recover(errFull) || b.Addr() != addr || b.current.Load() == old || b.Health() != nil {
				t.Fatalf("no new server at %s: %s, %v", addr, b.Addr(), b.Health())
			}
			<-again
			<-again
			useStream(t, nc)
			js, err := client.JetStream()
			require.NoError(t, err)
			if s, err := js.StreamInfo("S"); err != nil || s.State.Msgs != 2 {
				t.Errorf("the stream after it: %+v, %v", s, err)
			}
		})
	}
}

// What does not pass is left to the operator; nobody is cut off again and again, nor for a disk
// that takes nothing, nor after the end.
func TestRecoverRefuses(t *testing.T) {
	b := start(t, Config{})
	same := func(why string, health error) {
		t.Helper()
		if was := b.current.Load(); b.Recover(health) || b.current.Load() != was {
			t.Error("a new server: " + why)
		}
	}
	same("for a disk that cannot be trusted", errors.New("stream S write error: "+syscall.EIO.Error()))
	away := filepath.Join(t.TempDir(), "away")
	require.NoError(t, os.Rename(b.cfg.StoreDir, away))
	same("without a disk that takes anything", errFull)
	require.NoError(t, os.Rename(away, b.cfg.StoreDir))
	if !b.Recover(errFull) {
		t.Error("no new server")
	}
	same("at once after the last one", errFull)
	b.restarts = time.Time{}
	b.Shutdown()
	same("after the end", errFull)
}

// A server that cannot be started is named, and tried again.
func TestRecoverFails(t *testing.T) {
	file := config(t, users)
	b := start(t, Config{Addr: "127.0.0.1:0", ConfigFile: file})
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	was := b.current.Load()
	require.NoError(t, os.WriteFile(file, []byte("nonsense: true"), 0o600))
	if b.Recover(errFull) || !Passes(b.Health()) || b.current.Load() != was || !was.srv.Running() {
		t.Errorf("without a configuration: %v", b.Health())
	}
	require.NoError(t, os.WriteFile(file, text, 0o600))
	b.restarts = time.Time{}
	if !b.Recover(b.Health()) || b.Health() != nil {
		t.Errorf("with one again: %v", b.Health())
	}
}

// Of what several streams say, what does not pass counts; a sync that failed never passes, since
// what was to be synced looks written.
func TestPasses(t *testing.T) {
	said := func(what string, number syscall.Errno) server.HealthzError {
		return server.HealthzError{Error: "JetStream stream '$G > S' write error: " + (&fs.PathError{Op: what, Path: "/data/1.blk", Err: number}).Error()}
	}
	full, readOnly, quota := said("write", syscall.ENOSPC), said("write", syscall.EROFS), said("write", syscall.EDQUOT)
	broken, late := said("write", syscall.EIO), said("sync", syscall.ENOSPC)
	for _, c := range []struct {
		all    []server.HealthzError
		want   server.HealthzError
		passes bool
	}{
		{[]server.HealthzError{full}, full, true},
		{[]server.HealthzError{quota}, quota, true},
		{[]server.HealthzError{readOnly, full}, readOnly, true},
		{[]server.HealthzError{full, broken, late}, broken, false},
		{[]server.HealthzError{broken, full}, broken, false},
		{[]server.HealthzError{late}, late, false},
	} {
		if got := mostSevere(c.all); got == nil || got.Error() != c.want.Error || Passes(got) != c.passes {
			t.Errorf("%v: %v, which passes: %v", c.all, got, !c.passes)
		}
	}
	if again := fmt.Errorf("%w: %w: %w", errNotRestarted, errNotSynced, syscall.ENOSPC); Passes(again) {
		t.Error("passes after a sync that failed:", again)
	}
	if mostSevere(nil) != nil {
		t.Error("no trouble is trouble")
	}
}

// A stream's directory is there before the stream is and for a moment after it is removed: that is
// no trouble. One that was there when the server started, and gave no stream, is; until there is a
// stream.
func TestHealthWhileAStreamIsMade(t *testing.T) {
	dir := t.TempDir()
	lost, made := filepath.Join(dir, "jetstream", "$G", "streams", "S"), filepath.Join(dir, "jetstream", "$G", "streams", "MADE")
	require.NoError(t, os.MkdirAll(lost, 0o700))
	b := start(t, Config{StoreDir: dir, UnsafeNoSync: true})
	for range 2 {
		if err := b.Health(); err == nil || !strings.Contains(err.Error(), "S' could not be recovered") {
			t.Errorf("a stream that could not be recovered: %v", err)
		}
		require.NoError(t, os.MkdirAll(made, 0o700))
	}
	useStream(t, internal(t, b)) // makes S
	for range 2 {
		if err := b.Health(); err != nil {
			t.Errorf("a stream in the making: %v", err)
		}
	}
}

// The streams of an account that the configuration does not have are not lost. They are named at
// the start, since they keep what is delisted.
func TestHealthOfAnotherConfiguration(t *testing.T) {
	dir, log := t.TempDir(), new(strings.Builder)
	var names []string // of the accounts before
	for _, account := range []string{"$G", "A", "B"} {
		cfg := Config{StoreDir: dir, UnsafeNoSync: true, Logger: slog.New(slog.NewTextHandler(log, nil))}
		if account != "$G" {
			cfg.ConfigFile = config(t, `accounts { `+account+`: {jetstream: true, users: [{user: a, password: a}]} }`)
		}
		log.Reset()
		b := start(t, cfg)
		useStream(t, internal(t, b))
		require.NoError(t, b.Health())
		b.Shutdown()
		for _, name := range names {
			require.Contains(t, log.String(), "remove "+filepath.Join(dir, "jetstream", name)+" ")
		}
		require.Equal(t, len(names), strings.Count(log.String(), "are not used"), log)
		names = append(names, account)
	}
}

// A server that had no time to find out whether it listens is asked again; one that does not is not.
func TestHealthOnABusyMachine(t *testing.T) {
	conn := server.HealthzError{Type: server.HealthzErrorConn, Error: "failed to be ready for connections after 1ms: "}
	lost := server.HealthzError{Type: server.HealthzErrorStream, Error: "lost"}
	for _, ready := range []bool{true, false} {
		said := [][]server.HealthzError{{conn}, {conn}, {lost}}
		all := healthOf(func() (next []server.HealthzError) { next, said = said[0], said[1:]; return next }, func() bool { return ready })
		require.Equal(t, map[bool]server.HealthzError{true: lost, false: conn}[ready], all[0])
	}
}
