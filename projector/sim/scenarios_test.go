package sim

import (
	"strings"
	"time"

	"example.org/registry/events"
)

// scenario is a chain of steps that chance alone would rarely find, random within. It begins with a
// server that is well.
type scenario struct {
	name string
	run  func(*world)
}

func scenarios() []scenario {
	return []scenario{
		{"replay while subjects are displaced", (*world).replayUnderChange},
		{"last delivery lost", (*world).lostTail},
		{"second session ends the catching up", (*world).caughtUpBySecondSession},
		{"no consumer at a start", (*world).noConsumer},
		{"snapshots in a row", (*world).snapshotsInARow},
		{"snapshot on a lagging replica", (*world).lagging},
		{"leaderless", (*world).leaderlessThenMore},
		{"failing disk and a crash", (*world).failingDisk},
		{"poison and no answers", (*world).poison},
		{"lost middle delivery", (*world).lostMiddle},
	}
}

// await waits until the server is so, at most for d.
func (w *world) await(d time.Duration, is func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if is() {
			return true
		}
		time.Sleep(20 * time.Millisecond)
		w.look()
	}
	return false
}

func (w *world) caughtUp() bool { return w.server.p.Progress().CaughtUp }

// replayUnderChange replays over a slow way while newer messages displace those that are on it.
func (w *world) replayUnderChange() {
	for range 300 {
		w.publish()
	}
	for range 1 + w.rng.IntN(3) {
		f := faults{Slow: w.between(100*time.Microsecond, 4*time.Millisecond)}
		if w.rng.IntN(2) == 0 {
			f.LostReply, f.LateReply, f.Late = w.rng.Float64()*.5, w.rng.Float64()*.4, w.between(time.Millisecond, 4*time.Second)
		}
		w.tally.hit("slow way")
		w.wire.set(f)
		w.stop(w.rng.IntN(2) == 0)
		w.rebuild()
		for range 20 + w.rng.IntN(150) {
			w.publish()
			time.Sleep(w.between(0, 6*time.Millisecond))
			w.look()
		}
		w.heal()
		w.await(time.Minute, w.caughtUp)
	}
}

// lostTail: the last delivery is lost on a stream that is quiet.
func (w *world) lostTail() {
	for range 1 + w.rng.IntN(3) {
		left := 1 + w.rng.IntN(3)
		w.wire.setLose(func(subject string, answer bool) bool { left--; return subject == "" && answer && left >= 0 })
		w.publish()
		time.Sleep(w.between(time.Second, 4*time.Second))
	}
	w.wire.setLose(nil)
	w.settle()
}

// caughtUpBySecondSession: the answer is lost that says where the stream ends.
func (w *world) caughtUpBySecondSession() {
	w.stop(false)
	var losing bool
	w.wire.setLose(func(subject string, answer bool) bool {
		switch {
		case subject == "" && answer:
			losing = true // a delivery: from now on
		case strings.HasPrefix(subject, api+"CONSUMER.DELETE."):
			losing = false // the session has ended
		case losing && subject == eventInfo:
			return answer
		}
		return false
	})
	w.rebuild()
	w.await(20*time.Second, w.caughtUp)
	w.settle()
}

// noConsumer: R12. The broker answers about the stream and makes no consumer, or does not answer.
func (w *world) noConsumer() {
	w.stop(w.rng.IntN(2) == 0)
	if w.lastSaved == 0 {
		w.start()
		return
	}
	if w.rng.IntN(3) == 0 {
		w.wire.setDown(true)
	} else {
		w.wire.set(faults{NoConsumer: true})
	}
	w.start()
	time.Sleep(w.between(40*time.Second, 80*time.Second))
	w.look()
	if !w.caughtUp() {
		w.violation("R12: the saved state is not served: %s", w.server.p.Progress().LastError)
	}
	w.settle()
}

// snapshotsInARow: snapshots are put and pruned, also if the clock was set back, and a server may
// start from one.
func (w *world) snapshotsInARow() {
	for range keep + 2 {
		w.publish()
		w.settle()
		if len(w.bad) > 0 {
			return
		}
		if err := w.snapshot(); err != nil {
			w.violation("R13: all is well, and no snapshot can be put: %v", err)
		}
	}
	if w.rng.IntN(2) == 0 {
		w.stop(true)
		w.loseData()
		w.start()
	}
}

// lagging: snapshots are put while replicas lag.
func (w *world) lagging() {
	for range 3 {
		w.publish()
		w.settle()
		w.wire.set(faults{Lagging: true})
		w.trySnapshot()
		if o, err := w.newestSnapshot(); err != nil {
			w.violation("R13: no snapshot is there: %v", err)
		} else {
			w.checkSnapshot(w.server.js, o)
		}
		w.wire.set(faults{})
	}
}

// leaderlessThenMore: a node without a leader says for long how the stream once was.
func (w *world) leaderlessThenMore() {
	w.leaderless()
	w.leaderless()
	w.settle()
}

// evening puts snapshots before the clock is set back.
func (w *world) evening() {
	for range keep {
		w.publish()
		if w.settle(); len(w.bad) > 0 {
			return
		}
		w.trySnapshot()
	}
}

// morning puts one after that: by its time it is the oldest.
func (w *world) morning() {
	w.publish()
	if w.settle(); len(w.bad) > 0 {
		return
	}
	w.trySnapshot()
}

// failingDisk: writes fail, some are kept, and the server is killed.
func (w *world) failingDisk() {
	for range 4 {
		w.server.disk.set(.3+w.rng.Float64()*.6, w.between(0, time.Second))
		for range 20 {
			w.publish()
			time.Sleep(w.between(0, 400*time.Millisecond))
		}
		w.look()
		w.stop(w.rng.IntN(3) > 0)
		w.start()
		w.settle()
	}
}

// poison: rejected events cannot be copied for a while.
func (w *world) poison() {
	for range 3 {
		w.wire.setLose(func(subject string, answer bool) bool { return strings.HasPrefix(subject, events.RejectedPrefix) })
		for range 1 + w.rng.IntN(5) {
			w.send(w.message(events.Subject{Kind: events.KindEntry, List: events.Scammers, ID: "bad"}.String(), []byte("{")), nil)
		}
		for range 5 {
			w.publish()
		}
		time.Sleep(w.between(time.Second, 8*time.Second))
		w.look()
		if w.rng.IntN(2) == 0 {
			w.stop(w.rng.IntN(2) == 0)
			w.start()
			time.Sleep(w.between(time.Second, 4*time.Second))
		}
		w.wire.setLose(nil)
		w.settle()
	}
}

// lostMiddle: deliveries are lost between others.
func (w *world) lostMiddle() {
	w.wire.set(faults{LostDelivery: .3, DoubledDelivery: .2})
	for range 60 {
		w.publish()
	}
	time.Sleep(w.between(0, 2*time.Second))
	w.settle()
}
