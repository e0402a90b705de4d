package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.org/registry/events"
)

// wire is the server's way to the broker. It knows NATS's protocol well enough to do harm to single
// messages. The schedule sets what may happen; rng decides to which messages it does.
type wire struct {
	dial  func() (net.Conn, error)
	tally *tally

	mu     sync.Mutex
	rng    *rand.Rand
	conns  map[net.Conn]bool
	down   bool              // no connection can be made
	hole   chan struct{}     // bytes wait until it is closed; nil: they do not
	faults faults            //
	asked  map[string]string // a request's reply subject -> the request's subject
	keep   bool              // keep the next answer about the stream
	old    []byte            // that answer, as a node without a leader gives it

	// lose decides on single messages, for scenarios that aim. subject is that of the request, "" of
	// a delivery, and request is the whole last request.
	lose    func(subject string, answer bool) bool
	request string
}

// faults are the probabilities with which something happens to a message, and for how long.
type faults struct {
	LostRequest, LostReply, LateReply, DoubledReply float64
	ErrorReply, Forbidden                           float64
	LostDelivery, DoubledDelivery                   float64

	Late time.Duration // a late reply, at most
	Slow time.Duration // every message takes so long

	Leaderless bool // the node knows only how the stream once was
	Lagging    bool // direct gets find nothing
	NoConsumer bool // the broker makes no consumer
}

func newWire(seed uint64, tally *tally, dial func() (net.Conn, error)) *wire {
	return &wire{dial: dial, tally: tally, rng: rand.New(rand.NewPCG(seed, 77)), conns: map[net.Conn]bool{}, asked: map[string]string{}}
}

func (w *wire) set(f faults) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = f
}

func (w *wire) setLose(f func(subject string, answer bool) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = f
}

// keepAnswer keeps the next answer about the stream, for a node that lags.
func (w *wire) keepAnswer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep, w.old = true, nil
}

func (w *wire) setDown(down bool) {
	w.mu.Lock()
	w.down = down
	w.mu.Unlock()
	if down {
		w.cut()
	}
}

// cut closes every connection.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.Close()
	}
}

// blackhole stops all bytes, or lets them pass again. No connection is made meanwhile: the client
// library shakes hands with its lock held, and the bubble's clock would stand still.
func (w *wire) blackhole(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case on && w.hole == nil:
		w.hole = make(chan struct{})
	case !on && w.hole != nil:
		close(w.hole)
		w.hole = nil
	}
}

// InProcessConn implements nats.InProcessConnProvider.
func (w *wire) InProcessConn() (net.Conn, error) {
	w.mu.Lock()
	away := w.down || w.hole != nil
	w.mu.Unlock()
	if away {
		return nil, errors.New("sim: the broker is away")
	}
	broker, err := w.dial()
	if err != nil {
		return nil, err
	}
	client, ours := net.Pipe()
	l := &link{wire: w, broker: broker, client: ours, done: make(chan struct{}), toClient: make(chan []byte, 1<<16), toBroker: make(chan []byte, 1<<16)}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range []net.Conn{client, ours, broker} {
		w.conns[c] = true
	}
	go l.write(l.client, l.toClient)
	go l.write(l.broker, l.toBroker)
	go l.readBroker(client)
	go l.readClient()
	return client, nil
}

// link is one connection.
type link struct {
	*wire
	broker, client     net.Conn
	done               chan struct{} // closed when the broker's side ends
	toClient, toBroker chan []byte   // never full, so that no writer waits
}

func (l *link) readBroker(client net.Conn) {
	defer func() {
		l.broker.Close()
		l.client.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, c := range []net.Conn{client, l.client, l.broker} {
			delete(l.conns, c)
		}
		close(l.done)
	}()
	eachFrame(l.broker, func(f *frame) {
		for _, b := range l.fromBroker(f, l.later) {
			l.sendClient(b)
		}
	})
}

func (l *link) readClient() {
	defer l.broker.Close()
	eachFrame(l.client, func(f *frame) {
		pass, answer := l.fromClient(f)
		if answer != nil {
			l.sendClient(answer)
		}
		if pass {
			select {
			case l.toBroker <- f.bytes:
			case <-l.done:
			}
		}
	})
}

func (l *link) sendClient(b []byte) {
	select {
	case l.toClient <- b:
	case <-l.done:
	}
}

func (l *link) later(b []byte, d time.Duration) { time.AfterFunc(d, func() { l.sendClient(b) }) }

// write passes on what is queued, unless bytes wait or are slow.
func (l *link) write(to net.Conn, from <-chan []byte) {
	defer to.Close()
	for {
		select {
		case b := <-from:
			l.mu.Lock()
			hole, slow := l.hole, l.faults.Slow
			l.mu.Unlock()
			if hole != nil {
				select {
				case <-hole:
				case <-l.done:
				}
			}
			if slow > 0 && to == l.client && (bytes.HasPrefix(b, []byte("MSG ")) || bytes.HasPrefix(b, []byte("HMSG "))) { // not a handshake
				time.Sleep(slow)
			}
			if _, err := to.Write(b); err != nil {
				return
			}
		case <-l.done:
			return
		}
	}
}

// frame is one message of the protocol: a line, and what the line announces.
type frame struct {
	fields []string
	bytes  []byte
}

func (f *frame) verb() string { return strings.ToUpper(f.fields[0]) }

// payload returns headers and body of a MSG or HMSG.
func (f *frame) payload() (head, body []byte) {
	rest := f.bytes[bytes.IndexByte(f.bytes, '\n')+1 : len(f.bytes)-2]
	if f.verb() == "HMSG" {
		n, _ := strconv.Atoi(f.fields[len(f.fields)-2])
		return rest[:n], rest[n:]
	}
	return nil, rest
}

// with returns f with another payload.
func (f *frame) with(head, body []byte) []byte {
	var b bytes.Buffer
	if head != nil {
		fmt.Fprintf(&b, "HMSG %s %s %d %d\r\n", f.fields[1], f.fields[2], len(head), len(head)+len(body))
	} else {
		fmt.Fprintf(&b, "MSG %s %s %d\r\n", f.fields[1], f.fields[2], len(body))
	}
	b.Write(head)
	b.Write(body)
	b.WriteString("\r\n")
	return b.Bytes()
}

// eachFrame calls take for every frame until from ends.
func eachFrame(from io.Reader, take func(*frame)) {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		f := &frame{fields: strings.Fields(string(line)), bytes: line}
		if len(f.fields) == 0 {
			continue
		}
		switch f.verb() {
		case "MSG", "HMSG", "PUB", "HPUB":
			n, err := strconv.Atoi(f.fields[len(f.fields)-1])
			if err != nil {
				panic(fmt.Sprintf("sim: %q", line))
			}
			rest := make([]byte, n+2)
			if _, err := io.ReadFull(r, rest); err != nil {
				return
			}
			f.bytes = append(f.bytes, rest...)
		}
		take(f)
	}
}

// fromClient decides what becomes of a frame to the broker, and what the client gets at once.
func (w *wire) fromClient(f *frame) (pass bool, answer []byte) {
	sizes := map[string]int{"PUB": 1, "HPUB": 2}[f.verb()]
	if sizes == 0 || len(f.fields) != 3+sizes { // no request
		return true, nil
	}
	subject, reply := f.fields[1], f.fields[2]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[reply], w.request = subject, string(f.bytes)
	switch {
	case w.lose != nil && w.lose(subject, false):
		w.tally.hit("aimed loss")
		return false, nil
	case w.chance(w.faults.LostRequest):
		w.tally.hit("lost request")
		return false, nil
	case w.chance(w.faults.Forbidden):
		w.tally.hit("forbidden request")
		return false, fmt.Appendf(nil, "-ERR 'Permissions Violation for Publish to \"%s\"'\r\n", subject)
	}
	return true, nil
}

func (w *wire) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

const (
	api       = "$JS.API."
	eventInfo = api + "STREAM.INFO." + events.DefaultStream
)

// fromBroker returns what the client gets instead of f. late sends something later.
func (w *wire) fromBroker(f *frame, late func([]byte, time.Duration)) [][]byte {
	if v := f.verb(); v != "MSG" && v != "HMSG" {
		return [][]byte{f.bytes}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	subject := f.fields[1]
	if strings.Contains(string(f.bytes[:bytes.IndexByte(f.bytes, '\n')]), " $JS.ACK.") {
		return w.delivery(f)
	}
	asked := w.asked[subject]
	delete(w.asked, subject)
	if asked == "" || strings.Contains(asked, "CONSUMER.MSG.NEXT") {
		return [][]byte{f.bytes}
	}
	return w.answer(f, asked, late)
}

func (w *wire) delivery(f *frame) [][]byte {
	switch {
	case w.lose != nil && w.lose("", true):
		w.tally.hit("aimed loss")
		return nil
	case w.chance(w.faults.LostDelivery):
		w.tally.hit("lost delivery")
		return nil
	case w.chance(w.faults.DoubledDelivery):
		w.tally.hit("doubled delivery")
		return [][]byte{f.bytes, f.bytes}
	}
	return [][]byte{f.bytes}
}

// answer is fromBroker for the answer to a request for asked.
func (w *wire) answer(f *frame, asked string, late func([]byte, time.Duration)) [][]byte {
	head, body := f.payload()
	if w.keep && asked == eventInfo {
		w.keep, w.old = false, withoutLeader(body)
	}
	switch {
	case w.lose != nil && w.lose(asked, true):
		w.tally.hit("aimed loss")
		return nil
	case w.faults.Leaderless && asked == eventInfo && w.old != nil:
		w.tally.hit("answer without a leader")
		return [][]byte{f.with(head, w.old)}
	case w.faults.Leaderless:
		w.tally.hit("silence without a leader")
		return nil
	case w.faults.Lagging && strings.HasPrefix(asked, api+"DIRECT.GET."):
		w.tally.hit("lagging replica")
		return [][]byte{f.with([]byte("NATS/1.0 404 Message Not Found\r\n\r\n"), nil)}
	case w.faults.NoConsumer && strings.HasPrefix(asked, api+"CONSUMER.CREATE."):
		w.tally.hit("no consumer")
		return [][]byte{f.with(head, errorReply("consumer_create", 503, 10023, "insufficient resources"))}
	case w.chance(w.faults.ErrorReply) && strings.HasPrefix(asked, api) && !strings.HasPrefix(asked, api+"DIRECT."):
		w.tally.hit("error reply")
		return [][]byte{f.with(head, errorReply("error", 503, 10008, "JetStream system temporarily unavailable"))}
	case w.chance(w.faults.LostReply):
		w.tally.hit("lost reply")
		return nil
	case w.chance(w.faults.LateReply):
		w.tally.hit("late reply")
		late(f.bytes, time.Duration(1+w.rng.Int64N(int64(w.faults.Late))))
		return nil
	case w.chance(w.faults.DoubledReply):
		w.tally.hit("doubled reply")
		return [][]byte{f.bytes, f.bytes}
	}
	return [][]byte{f.bytes}
}

func errorReply(kind string, status, code int, text string) []byte {
	return fmt.Appendf(nil, `{"type":"io.nats.jetstream.api.v1.%s_response","error":{"code":%d,"err_code":%d,"description":%q}}`, kind, status, code, text)
}

// withoutLeader is an answer about a stream as a node gives it that knows no leader; nil for an
// error.
func withoutLeader(info []byte) []byte {
	var m map[string]any
	if json.Unmarshal(info, &m) != nil || m["error"] != nil {
		return nil
	}
	m["cluster"] = map[string]any{"name": "sim"}
	b, _ := json.Marshal(m)
	return b
}
