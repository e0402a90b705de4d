//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// poison is an event that the contract does not allow.
type poison struct {
	subject string
	payload []byte
}

// readPoisons reads the corpus of the room events, without what is good in it.
func readPoisons() ([]poison, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "events", "testdata", "poison", "*"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, errors.New("events/testdata/poison is empty"))
	}
	var all []poison
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		parts := bytes.SplitN(text, []byte("\n"), 4) // subject, problem, empty, payload
		if len(parts) != 4 {
			return nil, fmt.Errorf("%s is no file of the corpus", file)
		}
		p := poison{string(parts[0]), parts[3]}
		if _, err := events.DecodeMessage(p.subject, p.payload); err != nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// moduleRoot is the directory of the module that the soak was started in.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("run the soak in a checkout of the module, with Go: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// spoil publishes a poison event, on its own subject, where nothing valid ever is, or on that of somebody who is
// listed. There the returned event must follow, or the stream might keep nothing of that person that is valid.
func (b *backend) spoil(ctx context.Context) []events.Event {
	p := b.poisons[b.content.rng.IntN(len(b.poisons))]
	var after []events.Event
	if b.content.rng.IntN(2) == 0 {
		next := b.content.amend()
		if _, err := events.DecodeMessage(next.Data.Subject(), p.payload); err == nil {
			return []events.Event{next}
		}
		p.subject, after = next.Data.Subject(), []events.Event{next}
	}
	b.content.serial++
	id := fmt.Sprintf("%s-%d", b.content.run, b.content.serial)
	for {
		ack, err := b.publishRaw(ctx, p, id)
		if err == nil {
			b.last.Store(max(b.last.Load(), ack.Sequence))
			b.report.count("poison events")
			return after
		}
		if !pause(ctx, 50*time.Millisecond) {
			return nil
		}
	}
}

func (b *backend) publishRaw(ctx context.Context, p poison, id string) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return b.js.PublishMsg(ctx, &nats.Msg{Subject: p.subject, Data: p.payload, Header: nats.Header{jetstream.MsgIDHeader: {id}}})
}
