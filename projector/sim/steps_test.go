package sim

import (
	"testing/synctest"
	"time"
)

// step is one thing that happens, drawn from the seed.
func (w *world) step() {
	w.steps++
	switch k := w.rng.IntN(100); {
	case k < 42:
		w.publishSome()
	case k < 47:
		w.purge(w.rng.IntN(2) == 0)
		if w.rng.IntN(2) == 0 {
			w.publish()
		}
	case k < 52:
		w.tally.hit("cut")
		w.wire.cut()
	case k < 55:
		w.tally.hit("down")
		w.wire.setDown(true)
		w.rest()
		w.wire.setDown(false)
	case k < 57:
		w.holeFor(func() { w.rest() })
	case k < 67:
		w.worsen()
	case k < 70:
		w.leaderless()
	case k < 73:
		w.heal()
	case k < 78:
		w.spoilDisk()
	case k < 84:
		w.stop(w.rng.IntN(3) > 0)
		w.pause()
		w.start()
	case k < 87:
		w.tally.hit("broker restarted")
		w.restartBroker()
	case k < 91:
		w.stop(w.rng.IntN(2) == 0)
		w.loseData()
		w.start()
	case k < 93:
		w.hold()
	case k < 96:
		w.trySnapshot()
	default:
		w.settle()
	}
	w.rest()
}

func (w *world) publishSome() {
	n := 1 + w.rng.IntN(12)
	if w.rng.IntN(12) == 0 {
		n = 100 + w.rng.IntN(300)
	}
	for range n {
		w.publish()
		if n < 20 && w.rng.IntN(4) == 0 {
			time.Sleep(w.between(0, 5*time.Millisecond))
		}
	}
	w.say("published %d, up to %d", n, w.twin.end)
}

// rest lets some time pass.
func (w *world) rest() {
	switch w.rng.IntN(12) {
	case 0, 1, 2:
	case 3, 4, 5:
		time.Sleep(w.between(time.Millisecond, 60*time.Millisecond))
	case 6, 7, 8:
		time.Sleep(w.between(50*time.Millisecond, 2*time.Second))
	case 9, 10:
		time.Sleep(w.between(time.Second, 20*time.Second))
	case 11:
		time.Sleep(w.between(time.Second, 2*time.Minute))
	}
	w.look()
}

// pause is a short rest.
func (w *world) pause() { time.Sleep(w.between(0, 400*time.Millisecond)) }

// heal ends all faults.
func (w *world) heal() {
	w.wire.set(faults{})
	w.wire.setLose(nil)
	w.wire.blackhole(false)
	w.wire.setDown(false)
	if w.server == nil {
		w.start()
	}
	w.server.disk.set(0, 0)
	w.say("healed")
}

func (w *world) holeFor(f func()) {
	w.tally.hit("black hole")
	synctest.Wait() // no handshake is under way
	w.wire.blackhole(true)
	f()
	w.wire.blackhole(false)
}

// worsen makes the way to the broker worse.
func (w *world) worsen() {
	p := func(most float64) float64 { return w.rng.Float64() * most * float64(w.rng.IntN(2)) }
	f := faults{
		LostRequest: p(.2), LostReply: p(.3), LateReply: p(.3), DoubledReply: p(.3), ErrorReply: p(.2), Forbidden: p(.1),
		LostDelivery: p(.1), DoubledDelivery: p(.1), Late: w.between(time.Millisecond, 5*time.Second), Lagging: w.rng.IntN(4) == 0,
	}
	if w.rng.IntN(4) == 0 {
		w.tally.hit("slow way")
		f.Slow = w.between(100*time.Microsecond, 5*time.Millisecond)
	}
	w.say("faults %+v", f)
	w.wire.set(f)
}

func (w *world) spoilDisk() {
	fail, slow := w.rng.Float64(), time.Duration(0)
	if w.rng.IntN(2) == 0 {
		fail = 0
	}
	if w.rng.IntN(3) == 0 {
		slow = w.between(time.Millisecond, 3*time.Second)
	}
	w.say("the disk fails %.2f, slow %s", fail, slow)
	w.server.disk.set(fail, slow)
}

// leaderless has a node answer that lags and does not know who leads.
func (w *world) leaderless() {
	w.wire.set(faults{})
	w.wire.keepAnswer()
	time.Sleep(w.between(600*time.Millisecond, 3*time.Second))
	for range 1 + w.rng.IntN(10) {
		w.publish()
	}
	w.pause()
	w.say("leaderless")
	w.wire.set(faults{Leaderless: true})
	if w.rng.IntN(3) == 0 {
		w.stop(w.rng.IntN(2) == 0)
		w.start()
	}
	time.Sleep(w.between(time.Millisecond, 20*time.Second))
	w.look()
	w.wire.set(faults{})
}

// hold holds the model still for a while.
func (w *world) hold() {
	p := w.server.p
	p.PauseAt(0)
	defer p.Resume()
	at := w.server.model.View().Sequence() // the checkpoint may go back meanwhile, to what can be proven
	w.tally.hit("held")
	w.pause()
	if got := w.server.model.View().Sequence(); got != at {
		w.violation("held at %d, and yet at %d", at, got)
	}
}

// trySnapshot makes a snapshot, if the broker lets it.
func (w *world) trySnapshot() {
	if p := w.server.p.Progress(); p.Frozen() || !p.CaughtUp || p.Saved == 0 {
		return
	}
	if err := w.snapshot(); err != nil {
		w.say("no snapshot: %v", err)
	}
}
