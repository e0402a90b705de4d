package ranked

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGovernor: however many work at once, together they take their share, and all they like where nobody wants the processors.
func TestGovernor(t *testing.T) {
	const work, slices = 10 * time.Millisecond, 300 // of each worker
	for name, c := range map[string]struct {
		busy, filling bool
		used          float64 // of the processors, by others
		perSecond     uint64  // changes
		longer        float64 // than the work alone
	}{
		"idle": {longer: 1}, "busy": {busy: true, longer: 4}, "changing": {perSecond: 1000, longer: 4},
		"little used": {busy: true, used: 0.2, longer: 4}, "much used": {busy: true, used: 0.3, longer: 32}, "used by nobody that waits": {used: 0.6, longer: 1},
		"filling": {filling: true, longer: 32}, "rushing": {busy: true, perSecond: 5000, longer: 32},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var own atomic.Int64
				g := &governor{
					used: func() time.Duration {
						return time.Duration(own.Load()) + time.Duration(c.used*float64(runtime.GOMAXPROCS(0))*float64(time.Since(began)))
					},
					busy: func() bool { return c.busy }, filling: func() bool { return c.filling },
					sequence: func() uint64 { return uint64(time.Since(began).Seconds() * float64(c.perSecond)) },
				}
				g.debt(0) // a rate needs two looks
				time.Sleep(2 * lookEvery)
				started := time.Now()
				var workers sync.WaitGroup
				for range runtime.GOMAXPROCS(0) {
					workers.Go(func() {
						m := meter{governor: g, beat: func() {}}
						m.begin()
						for range slices {
							time.Sleep(work)
							own.Add(int64(work))
							m.tick()
						}
					})
				}
				workers.Wait()
				if got := float64(time.Since(started)) / float64(work*slices); got < c.longer*0.95 || got > c.longer*1.05 {
					t.Errorf("the work takes %.2f times as long, want %.2f", got, c.longer)
				}
			})
		})
	}
}

// TestGovernorHurries: whoever rests goes on at once when the store is being closed.
func TestGovernorHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &governor{filling: func() bool { return true }, sequence: func() uint64 { return 0 }}
		done := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(done) })
		began := time.Now()
		g.pay(time.Hour, done, func() {})
		if took := time.Since(began); took != time.Second {
			t.Errorf("went on after %s", took)
		}
	})
}
