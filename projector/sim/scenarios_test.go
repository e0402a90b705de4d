package sim

import (
	"context"
	"fmt"
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
		{"doubt over a restart", (*world).doubt},
		{"first replay cut short", (*world).halfReplay},
		{"shorter, then another, then right", (*world).shorterThenAnother},
		{"purge and publish within a poll", (*world).purgeAndPublish},
		{"erased tail", (*world).erasedTail},
		{"last delivery lost", (*world).lostTail},
		{"second session ends the catching up", (*world).caughtUpBySecondSession},
		{"no consumer at a start", (*world).noConsumer},
		{"snapshots in a row", (*world).snapshotsInARow},
		{"snapshot on a lagging replica", (*world).lagging},
		{"leaderless", (*world).leaderlessThenMore},
		{"made again with its epoch", (*world).madeAgain},
		{"put back and grown", (*world).putBack},
		{"missing", (*world).missing},
		{"accepted by another server", (*world).otherHistory},
		{"made again under an erasure", (*world).eraseOther},
		{"settings changed", (*world).settingsChanged},
		{"failing disk and a crash", (*world).failingDisk},
		{"poison and no answers", (*world).poison},
		{"lost middle delivery", (*world).lostMiddle},
		{"another stream between check and consumer", (*world).replacedBetween},
		{"put back, and back again", (*world).putBackAndUndone},
	}
}

// fill publishes n messages of one subject, which displace each other.
func (w *world) fill(n int) {
	for range n {
		data := events.Views{Revision: 1, List: events.Scammers, EntryID: "filler", Views: int64(w.count)}
		w.send(w.event(data), data)
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

func (w *world) frozen() bool   { return w.server.p.Progress().Frozen }
func (w *world) caughtUp() bool { return w.server.p.Progress().CaughtUp }

// copyNow keeps a copy of the broker as it is, and publishes more.
func (w *world) copyNow(more int) {
	w.restartBroker(func() { w.copyBroker("older") })
	for range more {
		w.publish()
	}
	w.await(30*time.Second, func() bool {
		w.absorbAll()
		p := w.server.p.Progress()
		return p.Saved == w.twin.end && p.Checkpoint == w.twin.end
	})
}

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

// doubt: a stream that was seen shorter stays suspect over restarts.
func (w *world) doubt() {
	w.copyNow(2 + w.rng.IntN(20))
	at := w.server.p.Progress().Checkpoint
	w.rewind("older", 0)
	if !w.await(20*time.Second, w.frozen) {
		w.violation("R4: not frozen by a stream that ends before the checkpoint")
		return
	}
	time.Sleep(10 * time.Second) // to be saved
	w.stop(w.rng.IntN(2) == 0)
	w.untouched = false
	w.fill(int(at-min(at, w.twin.end)) + w.broker.kept + 1 + w.rng.IntN(10))
	w.mustStayFrozen = true
	w.start()
	if w.await(30*time.Second, func() bool { return !w.frozen() && w.caughtUp() }) {
		w.violation("R4: the server was frozen, and has forgotten it")
	}
	w.settle()
}

// halfReplay: a process ends in its first replay, and the stream loses its tail.
func (w *world) halfReplay() {
	w.copyNow(20)
	w.stop(false)
	w.removeStore()
	w.loosen()
	w.wire.set(faults{Slow: 20 * time.Millisecond})
	w.startFrom(nil)
	w.server.p.PauseAt(w.twin.end - 1 - uint64(w.rng.IntN(10)))
	time.Sleep(w.between(5*time.Second, 20*time.Second)) // and what it has is saved
	w.stop(w.rng.IntN(2) == 0)
	if s := w.lastSaved; s != 0 {
		w.violation("R6: a first replay that did not end is saved as one of %d", s)
	}
	w.wire.set(faults{})
	if w.rng.IntN(2) == 0 {
		w.rewind("older", w.rng.IntN(5))
		w.calm() // nothing was read of what is lost
	} else if w.rng.IntN(2) == 0 {
		w.wire.setDown(true)
		w.start()
		time.Sleep(time.Minute)
		if w.caughtUp() {
			w.violation("R3: half a first replay is served")
		}
	}
	w.settle()
}

// shorterThenAnother: once a stream was another one, it does not thaw as one that was shorter.
func (w *world) shorterThenAnother() {
	w.copyNow(5 + w.rng.IntN(10))
	at := w.server.p.Progress().Checkpoint
	w.rewind("older", 0)
	if !w.await(20*time.Second, w.frozen) {
		w.violation("R4: not frozen by a stream that ends before the checkpoint")
		return
	}
	w.untouched = false
	for w.twin.end < at {
		w.publish()
	}
	w.await(3*time.Second, func() bool { return false })
	w.restartBroker(func() { w.setTwin(w.restoreBroker("newest")) })
	w.await(20*time.Second, func() bool { return false })
	w.settle()
}

// purgeAndPublish: an erased tail, and a message that comes before anybody looks.
func (w *world) purgeAndPublish() {
	for range 10 + w.rng.IntN(20) {
		w.publish()
		time.Sleep(w.between(0, 300*time.Millisecond))
		w.wire.set(faults{Slow: w.between(0, 400*time.Millisecond)})
		w.purge(true)
		if w.rng.IntN(3) > 0 {
			time.Sleep(w.between(0, 600*time.Millisecond))
		}
		for range w.rng.IntN(3) {
			w.publish()
		}
		w.look()
	}
	w.heal()
	w.settle()
}

// erasedTail: the stream's last messages are erased before they are delivered.
func (w *world) erasedTail() {
	w.holeFor(func() {
		for range 1 + w.rng.IntN(4) {
			w.publish()
		}
		for range 6 {
			w.purge(true)
		}
		time.Sleep(w.between(0, 3*time.Second))
	})
	w.settle()
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

// madeAgain: the stream is made again with its epoch, and grows past the checkpoint. No
// message is left before that, so only the creation time tells.
func (w *world) madeAgain() {
	at := w.server.p.Progress().Checkpoint
	if at == 0 {
		return
	}
	w.stop(false)
	w.remake(w.epoch(), 0)
	w.fill(int(at) + w.broker.kept + 1)
	w.start()
	w.await(20*time.Second, w.frozen)
	w.settle()
}

// putBack: the stream is put back and grows past the checkpoint, which its messages displace.
func (w *world) putBack() {
	w.copyNow(10 + w.rng.IntN(20))
	at := w.server.p.Progress().Checkpoint
	if w.rng.IntN(2) == 0 {
		w.stop(false)
	} else {
		w.wire.setDown(true)
	}
	w.rewind("older", 0)
	w.wire.setDown(true)
	w.untouched = false
	data := w.entry(events.Legit, "telltale")
	w.send(w.event(data), data)
	w.fill(int(at-min(at, w.twin.end)) + w.broker.kept + 1)
	w.heal()
	w.await(20*time.Second, w.frozen)
	w.settle()
}

// missing: the stream is deleted, and made again later.
func (w *world) missing() {
	epoch := w.epoch()
	w.deleteStream()
	w.await(10*time.Second, func() bool { return false })
	if w.rng.IntN(2) == 0 {
		epoch = fmt.Sprint("epoch", w.rng.Uint64())
	}
	w.makeStream(epoch)
	for range w.rng.IntN(30) {
		w.publish()
	}
	w.settle()
}

// otherHistory: another server accepted the stream after it was put back, and it has grown past
// this one's checkpoint.
func (w *world) otherHistory() {
	w.copyNow(10 + w.rng.IntN(10))
	at, history := w.server.p.Progress().Checkpoint, w.server.p.Progress().HistoryName()
	w.stop(false)
	w.rewind("older", 0)
	w.untouched = false
	w.begin(history)
	begun := w.twin.end
	w.fill(int(at-min(at, w.twin.end)) + w.broker.kept + 1)
	saved := w.lastSaved
	w.start()
	if !w.await(20*time.Second, w.frozen) && saved >= begun {
		w.violation("R4: not frozen by a stream that another server accepted at %d, before the saved checkpoint %d", begun, saved)
		return
	}
	w.settle()
}

// eraseOther: the stream is made again while an erasure is under way, at the eraser's first request
// at the latest: between its last one, which looks at the removal, and the purge is no protection.
func (w *world) eraseOther() {
	data := w.entry(events.Scammers, "telltale")
	w.send(w.event(data), data)
	w.settle()
	w.wire.set(faults{Slow: 300 * time.Millisecond})
	asked, left := make(chan struct{}), 1+w.rng.IntN(8)
	w.wire.setLose(func(subject string, answer bool) bool {
		if !answer && left > 0 && strings.HasPrefix(subject, api+"STREAM.MSG.GET.") {
			if left--; left == 0 || strings.Contains(w.wire.request, "telltale") {
				left = 0
				close(asked)
			}
		}
		return false
	})
	delisting := events.Delisting{Revision: 1, Time: time.Unix(1, 0).UTC(), List: events.Scammers, EntryID: "telltale"}
	at := w.send(w.event(delisting), delisting)
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
	}
	epoch := w.epoch()
	w.deleteStream()
	w.makeStream(epoch)
	w.send(w.event(data), data)
	w.fill(int(at) - 1 + w.rng.IntN(w.broker.kept))
	w.await(20*time.Second, w.frozen)
	w.checkStream()
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
	w.otherHistory()
}

// settingsChanged: the stream's settings become such that it would lose events.
func (w *world) settingsChanged() {
	w.stop(false)
	if w.lastSaved == 0 {
		w.start()
		return
	}
	w.wire.setDown(true)
	w.start()
	time.Sleep(30 * time.Second)
	w.noteTrouble()
	w.spoiled = true
	w.setMaxAge(100 * 365 * 24 * time.Hour) // the broker compares with the real clock
	w.wire.setDown(false)
	w.await(30*time.Second, w.frozen)
	w.setMaxAge(0)
	w.await(10*time.Second, func() bool { return false })
	w.stop(false)
	w.start()
	w.settle()
}

func (w *world) unspoil() { w.setMaxAge(0) }

func (w *world) setMaxAge(age time.Duration) {
	info, err := w.stream().Info(context.Background())
	w.must(err)
	cfg := info.Config
	cfg.MaxAge = age
	_, err = w.broker.js.UpdateStream(context.Background(), cfg)
	w.must(err)
	w.say("MaxAge is %s", age)
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

// replacedBetween: the stream is replaced while a session begins, after it was looked at.
func (w *world) replacedBetween() {
	at := w.twin.end
	if at == 0 {
		return
	}
	epoch := w.epoch()
	w.wire.cut()
	w.wire.set(faults{Slow: w.between(50*time.Millisecond, 300*time.Millisecond)})
	w.await(w.between(300*time.Millisecond, 1500*time.Millisecond), func() bool { return false })
	if w.rng.IntN(2) == 0 {
		epoch = "another"
	}
	w.remake(epoch, int(at)+1+w.rng.IntN(20))
	w.heal()
	w.settle()
}

// putBackAndUndone: what looked shorter is back as it was.
func (w *world) putBackAndUndone() {
	w.copyNow(5 + w.rng.IntN(20))
	w.rewind("older", 0)
	w.await(w.between(0, 20*time.Second), func() bool { return false })
	w.undo()
	w.settle()
}
