package projector

import (
	"sync"
	"time"
)

// message is one message of the stream, as received.
type message struct {
	subject string
	data    []byte
	id      string // Nats-Msg-Id; empty without one
	seq     uint64 // in the stream
	time    time.Time
	last    time.Time // when received, if nothing was pending behind it; else zero
}

// queue takes messages from the client library's goroutine and gives all it has at once. It is
// bounded in messages and bytes: push waits.
type queue struct {
	maxMessages, maxBytes int

	mu       sync.Mutex
	changed  sync.Cond
	messages []message
	bytes    int
	closed   bool
}

func newQueue(maxMessages, maxBytes int) *queue {
	q := &queue{maxMessages: maxMessages, maxBytes: maxBytes}
	q.changed.L = &q.mu
	return q
}

// push adds m, waiting for room. A closed queue takes nothing.
func (q *queue) push(m message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && (len(q.messages) >= q.maxMessages || q.bytes >= q.maxBytes) {
		q.changed.Wait()
	}
	if q.closed {
		return
	}
	q.messages = append(q.messages, m)
	q.bytes += len(m.data)
	q.changed.Broadcast()
}

// take waits for messages and returns all of them, in order; nil once the queue is closed.
func (q *queue) take() []message {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && len(q.messages) == 0 {
		q.changed.Wait()
	}
	if q.closed {
		return nil
	}
	all := q.messages
	q.messages, q.bytes = nil, 0
	q.changed.Broadcast()
	return all
}

// close ends every push and take, now and later.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
