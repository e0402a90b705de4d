package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/snapshots"
)

// openStates opens the states that a command reads: the running server's if name is empty, else the
// file of that name or, if there is none, the snapshot in the object store. The caller closes it.
func openStates(p *process, name string, server cli.AdminFlags, broker cli.BrokerFlags) (io.ReadCloser, error) {
	if name == "" {
		return server.Ask(p.ctx, http.MethodGet, "/export")
	}
	file, err := os.Open(name)
	if err == nil {
		return file, nil
	}
	if !errors.Is(err, os.ErrNotExist) || strings.ContainsRune(name, os.PathSeparator) {
		return nil, unusable(name, cli.Bare(err))
	}
	return openSnapshot(p, name, broker)
}

// openSnapshot opens a snapshot in the object store.
func openSnapshot(p *process, name string, broker cli.BrokerFlags) (io.ReadCloser, error) {
	nc, js, err := connect(broker, "registry snapshot")
	if err != nil {
		return nil, err
	}
	from, err := snapshots.NewBucket(js, 0).Open(p.ctx, name)
	if err == nil {
		return closing{from, closerFunc(nc.Close)}, nil
	}
	nc.Close()
	if errors.Is(err, snapshots.ErrNoSnapshot) {
		return nil, fmt.Errorf("%s: no such file, and no such snapshot in the object store; registry snapshot list shows them", cli.Printable(name))
	}
	return nil, unanswered(broker, err)
}

// closing is a reader that closes something else, too.
type closing struct {
	io.ReadCloser
	other io.Closer
}

// Close implements io.Closer.
func (c closing) Close() error { return errors.Join(c.ReadCloser.Close(), c.other.Close()) }

type closerFunc func()

// Close implements io.Closer.
func (f closerFunc) Close() error {
	f()
	return nil
}

// unusable adds an alternative to the error of a snapshot or export. An empty name is the running
// server's.
func unusable(name string, err error) error {
	if name == "" {
		return fmt.Errorf("answer of the server: %w", err)
	}
	return fmt.Errorf("%s: %w; %s", cli.Printable(name), err, cli.SnapshotAdvice(err))
}

// unanswered returns the error of a request about the object store, with the broker's name and the
// remedy.
func unanswered(broker cli.BrokerFlags, err error) error {
	return fmt.Errorf("broker at %s: object store: %w", broker.Addresses(), cli.Advise(err))
}

// copyStates copies a snapshot line by line, and checks it on the way. What is written is whole only if
// the error is nil.
func copyStates(from io.Reader, to io.Writer) (h snapshots.Header, err error) {
	var w *snapshots.Writer
	err = snapshots.Read(from, func(begun snapshots.Header) error {
		h = begun
		w, err = snapshots.NewWriter(to, h)
		return err
	}, func(sequence uint64, e events.Event) error {
		line, err := snapshots.EncodeState(e.Data)
		if err != nil {
			return err
		}
		return w.Add(snapshots.State{Sequence: sequence, Line: line})
	})
	if err != nil {
		return h, err
	}
	return h, w.End()
}

// describe returns a snapshot's description.
func describe(h snapshots.Header) string {
	return fmt.Sprintf("stream %s, checkpoint %d, %s, digest %s", cli.Printable(h.Stream), h.Sequence, cli.Count(h.Count, "state"), h.Digest)
}

// connect connects a command that needs no stream. The caller closes the connection.
func connect(broker cli.BrokerFlags, name string) (*nats.Conn, jetstream.JetStream, error) {
	if err := broker.Check(); err != nil {
		return nil, nil, err
	}
	nc, err := broker.Connect(name)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("broker at %s: %w", broker.Addresses(), err)
	}
	return nc, js, nil
}
