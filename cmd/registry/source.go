package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/snapshots"
)

// runningServer, as the name of a source, means the running server's export instead of a file or a snapshot.
const runningServer = ""

// openStates opens the file with this name or, if there is none, the snapshot with this name in the object
// store. The caller closes it.
func openStates(p *process, name string, broker cli.BrokerFlags) (io.ReadCloser, error) {
	file, err := os.Open(name)
	if err == nil {
		return file, nil
	}
	mayBeSnapshot := errors.Is(err, os.ErrNotExist) && !strings.ContainsRune(name, os.PathSeparator)
	if !mayBeSnapshot {
		return nil, explainSource(name, cli.WithoutPath(err))
	}

	nc, js, err := broker.Connect("registry snapshot")
	if err != nil {
		return nil, err
	}
	defer nc.Close()

	// Open reads the whole snapshot into memory, so it can be read without the connection.
	object, err := snapshots.NewBucket(js).Open(p.ctx, name)
	if errors.Is(err, snapshots.ErrNoSnapshot) {
		return nil, fmt.Errorf("%s: no such file, and no such snapshot in the object store; registry snapshot list shows them", cli.Printable(name))
	}
	if err != nil {
		return nil, explainBucket(broker, err)
	}
	return object, nil
}

// explainSource adds the name of the source, and the remedy, to an error of reading states.
func explainSource(name string, err error) error {
	if name == runningServer {
		return fmt.Errorf("answer of the server: %w", err)
	}
	remedy := cmp.Or(cli.Remedy(err), "use another one: registry snapshot list shows those in the object store")
	return fmt.Errorf("%s: %w; %s", cli.Printable(name), err, remedy)
}

// explainBucket adds the broker's addresses and the remedy to the error of a request about the object store.
func explainBucket(broker cli.BrokerFlags, err error) error {
	return fmt.Errorf("broker at %s: object store: %w", broker.Addresses(), cli.Advise(err))
}

// copyStates copies the text of a snapshot, which may be packed, and checks it on the way. After an error, the
// copy is only a part.
func copyStates(from io.Reader, to io.Writer) (h snapshots.Header, err error) {
	text, err := snapshots.Unpack(from)
	if err != nil {
		return h, err
	}
	return snapshots.Read(io.TeeReader(text, to), func(uint64, events.Event) error { return nil })
}

func describeHeader(h snapshots.Header) string {
	return fmt.Sprintf("stream %s, checkpoint %d, %s, digest %s", cli.Printable(h.Stream), h.Sequence, cli.Count(h.Count, "state"), h.Digest)
}
