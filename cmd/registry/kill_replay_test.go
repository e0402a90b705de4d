package main

import (
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// newFailing is a killer of which each run is the same.
func newFailing(t *testing.T) *killer {
	return &killer{t: t, rng: rand.New(rand.NewPCG(1, 1)), dir: t.TempDir(), pool: eventstest.Entries(40, 1)}
}

// survive starts the server as usual, compares it with the stream, and stops it.
func (k *killer) survive(round int) {
	k.t.Helper()
	c := k.start(round)
	line := k.ready(c)
	k.notBackwards(line)
	if round == 0 {
		k.acked = append(k.acked, publishUntilDead(line.NATS, k.events(200), 1)...)
	}
	stream := k.readStream(line.NATS)
	k.nothingLost(stream)
	model := k.digestIsReplays(line, stream)
	k.answersAreRight(line, naive(stream))
	k.searchesAreRight(line, model)
	if status := c.end(syscall.SIGTERM); status != 0 {
		k.t.Errorf("stopped with status %d", status)
	}
}

// digestIsReplays compares the server's digest with that of the stream applied to an empty model, once
// the server has come as far, and returns the model.
func (k *killer) digestIsReplays(line logLine, stream []stored) *readmodel.Model {
	k.t.Helper()
	model, renderer := readmodel.New(), readmodel.NewRenderer()
	var last uint64
	for _, m := range stream {
		last = m.seq
		model.Apply([]readmodel.Record{renderer.Render(m.seq, m.event.Data)}, m.seq)
	}
	var doc struct {
		Checkpoint, Lag, SnapshotSequence uint64
		Digest                            string
		Rejected                          int
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		k.get("http://"+line.Admin+"/projection", &doc)
		if doc.Checkpoint >= last && doc.Lag == 0 && doc.Rejected >= k.poison {
			break
		}
	}
	if want := model.Digest().String(); doc.Digest != want || doc.Checkpoint < last {
		k.t.Errorf("digest %s at %d, a replay up to %d has %s", doc.Digest, doc.Checkpoint, last, want)
	}
	if doc.Rejected != k.poison {
		k.t.Errorf("%d copies of %d rejected events", doc.Rejected, k.poison)
	}
	k.checkpoint = max(k.checkpoint, doc.Checkpoint)
	return model
}

// saved waits until all that is applied is on disk, and nothing is wrong any more.
func (k *killer) saved(line logLine) {
	k.t.Helper()
	var doc struct {
		Checkpoint, SnapshotSequence uint64
		LastError                    *string
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		k.get("http://"+line.Admin+"/projection", &doc)
		if doc.SnapshotSequence == doc.Checkpoint && doc.LastError == nil {
			return
		}
	}
	k.t.Errorf("not saved: %+v", doc)
}

func (k *killer) storePath() string { return filepath.Join(k.dir, "data", "registry.db") }
