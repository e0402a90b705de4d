//go:build unix && !race

package nights

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
	"example.org/registry/projector/recovery"
)

// The registry is small, so that most subjects change on both sides of a loss.
const subjectsPerList = 4

// state draws a new state with the next revision.
func (n *night) state(r *rand.Rand) events.Data {
	n.serial++
	revision, id := n.serial, fmt.Sprint("e", r.IntN(subjectsPerList))
	list := events.Lists()[r.IntN(events.NumLists)]
	switch r.IntN(10) {
	case 0, 1, 2:
		return events.Delisting{Revision: revision, List: list, EntryID: id}
	case 3:
		return events.Views{Revision: revision, List: list, EntryID: id, Views: revision}
	case 4:
		if r.IntN(3) == 0 {
			return events.DonationRemoval{Revision: revision, DonationID: id}
		}
		return events.Donation{Revision: revision, DonationID: id, Status: events.DonationPending, Amount: fmt.Sprint(revision), Currency: "BTC",
			RequiredConfirmations: 6, CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}
	}
	return events.Entry{Revision: revision, List: list, EntryID: id, ChatID: fmt.Sprint(900000 + revision), Name: fmt.Sprint("Osoba ", revision),
		Verified: r.IntN(2) == 0, ReportID: "r", ReportedAt: eventstest.Start()}
}

// publish publishes up to eight new states: in order, as two workers do, or with some that were
// overtaken by another state of the same or a greater revision.
func (n *night) publish(a, b int) {
	r := rand.New(rand.NewPCG(uint64(a), uint64(b)))
	var batch []events.Data
	for range 1 + a%8 {
		d := n.state(r)
		if b%3 == 2 && r.IntN(4) == 0 {
			d = events.Revised(d, 1+r.Int64N(n.serial))
		}
		batch = append(batch, d)
	}
	if b%3 == 1 {
		r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	}
	n.send(batch...)
}

// repeat publishes old events again, in any order.
func (n *night) repeat(a, b int) {
	r := rand.New(rand.NewPCG(uint64(a), uint64(b)))
	batch := slices.Clone(n.sent)
	r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	n.send(batch[:min(len(batch), 1+a%16)]...)
}

// displace publishes five events that are old or invalid on one subject.
func (n *night) displace(a, b int) {
	if len(n.sent) == 0 {
		return
	}
	d := n.sent[a%len(n.sent)]
	for range 5 {
		if b%2 == 0 {
			n.send(d)
		} else if n.sendRaw(d.Subject().String(), []byte("{}")) != nil {
			return
		}
	}
}

// recreate makes a backend create a missing stream and publish into it, before the operator comes.
func (n *night) recreate(a, b int) {
	if !n.hasBroker() || n.stream().exists {
		return
	}
	epoch := events.NewEpoch()
	n.recreated = names{epoch: true}
	n.must(n.withStream(func(ctx context.Context, js jetstream.JetStream) error {
		_, err := eventstest.Create(ctx, js, publish.StreamConfig(events.DefaultStream, *natsNodes, events.DefaultHistory, epoch))
		return err
	}))
	n.publish(a, b)
}

// send publishes states as a backend without memory does, to the first that is not acknowledged.
func (n *night) send(batch ...events.Data) {
	for _, d := range batch {
		payload, err := events.Encode(events.StateEvent(d))
		n.must(err)
		n.ledger[text(d)] = true
		if removal := recovery.Withdrawal(d); removal != nil { // as registry tombstones writes it
			n.ledger[text(removal)] = true
		}
		n.sent = append(n.sent, d)
		if err := n.sendRaw(d.Subject().String(), payload); err != nil {
			n.tell("not published: %v", err)
			return
		}
	}
}

func (n *night) sendRaw(subject string, payload []byte) error {
	if !n.hasBroker() {
		return nats.ErrNoServers
	}
	return n.withStream(func(ctx context.Context, js jetstream.JetStream) error {
		_, err := js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: payload, Header: nats.Header{events.HeaderContent: {events.ContentType}}},
			jetstream.WithRetryWait(20*time.Millisecond), jetstream.WithRetryAttempts(20))
		return err
	})
}

// content is what a stream holds.
type content struct {
	exists    bool
	epoch     string
	last      uint64 // sequence
	messages  uint64
	states    states
	times     map[uint64]time.Time
	displaced []string // subjects whose last message is not their true state
	histories names    // of the newest marker, or the epoch
}

// stream reads the whole stream. The broker runs.
func (n *night) stream() (c content) {
	n.must(eventually(n.ctx, func() error {
		return n.withStream(func(ctx context.Context, js jetstream.JetStream) (err error) {
			c, err = read(ctx, js)
			return err
		})
	}))
	return c
}

func read(ctx context.Context, js jetstream.JetStream) (c content, err error) {
	c = content{states: states{}, histories: names{}, times: map[uint64]time.Time{}}
	s, err := js.Stream(ctx, events.DefaultStream)
	if err == jetstream.ErrStreamNotFound {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	info := s.CachedInfo()
	c.exists, c.last, c.messages, c.epoch = true, info.State.LastSeq, info.State.Msgs, info.Config.Metadata["registry-epoch"]
	newest := events.History{Name: c.epoch}
	lastOf := map[string]events.Data{}
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err == jetstream.ErrMsgNotFound {
			continue
		}
		if err != nil {
			return c, err
		}
		c.times[seq] = m.Time
		if m.Subject == events.HistorySubject {
			if h, err := events.DecodeHistory(m.Data); err == nil && h.Revision > newest.Revision {
				newest = h
			}
			continue
		}
		e, err := events.DecodeMessage(m.Subject, m.Data)
		lastOf[m.Subject] = nil
		if err == nil {
			c.states.add(e.Data)
			lastOf[m.Subject] = e.Data
		}
	}
	for _, name := range newest.Names() {
		c.histories[name] = true
	}
	for subject, is := range c.states {
		if last := lastOf[subject.String()]; last == nil || events.Compare(last, is) != 0 {
			c.displaced = append(c.displaced, subject.String())
		}
	}
	return c, nil
}

// covers reports whether a stream is still the one that was read, and has all that was known.
func (c *content) covers(m memory) bool {
	for seq, was := range m.stream {
		if is, ok := c.times[seq]; seq > c.last || ok && !is.Equal(was) {
			return false
		}
	}
	return m.histories.share(c.histories) && len(m.known.lacking(c.states)) == 0
}
