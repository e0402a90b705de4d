package bucket

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

func lease(d time.Duration) func(*Bucket) { return func(b *Bucket) { b.lease = d } }

// One at a time holds the lock. It outlives its lease while it is renewed, and passes to another
// when it is released or its holder dies.
func TestLock(t *testing.T) {
	t.Parallel()
	a, js := open(t, Config{Holder: "a"}, lease(400*time.Millisecond))
	b := New(js, Config{Holder: "b"})
	b.lease = a.lease
	_, lock, err := a.Lock(t.Context())
	require.NoError(t, err)
	until := time.Now().Add(time.Second) // more than two leases
	for time.Now().Before(until) {
		if _, _, err := b.Lock(t.Context()); !errors.Is(err, ErrLocked) {
			t.Fatalf("two have the lock: %v", err)
		}
	}
	lock.Release()
	_, second, err := b.Lock(t.Context())
	require.NoError(t, err)
	second.cancel(nil) // b dies: nothing renews, nothing releases
	<-second.done
	for {
		_, third, err := a.Lock(t.Context())
		if err == nil {
			third.Release()
			break
		}
		if !errors.Is(err, ErrLocked) {
			t.Fatal(err)
		}
	}
	if m, err := mustStream(t, a).Info(t.Context()); err != nil || m.State.Msgs != 1 {
		t.Errorf("the lock leaves %d messages, %v", m.State.Msgs, err)
	}
}

// Of many that try at the same moment one gets the lock.
func TestLockRace(t *testing.T) {
	t.Parallel()
	a, js := open(t, Config{Holder: "a"})
	const tries = 20
	got := make(chan *Lock, tries)
	for range tries {
		go func() {
			_, l, err := New(js, Config{Holder: "x"}).Lock(t.Context())
			if err != nil && !errors.Is(err, ErrLocked) {
				t.Error(err)
			}
			got <- l
		}()
	}
	held := 0
	for range tries {
		if l := <-got; l != nil {
			held++
			defer l.Release()
		}
	}
	if held != 1 {
		t.Errorf("%d have the lock of %v", held, a)
	}
}

// The holder learns through the context that it has lost the lock.
func TestLostLock(t *testing.T) {
	t.Parallel()
	b, js := open(t, Config{Holder: "a"}, lease(200*time.Millisecond))
	ctx, lock, err := b.Lock(t.Context())
	require.NoError(t, err)
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: lockSubject, Data: []byte(`{"holder":"b","lease":60000000000}`)}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("not told")
	}
	lock.Release()
	if _, _, err := b.Lock(t.Context()); !errors.Is(err, ErrLocked) {
		t.Errorf("the other's lock was given back: %v", err)
	}
}

// A renewal whose acknowledgment was lost does not lose the lock.
func TestLockAfterALostAcknowledgment(t *testing.T) {
	t.Parallel()
	b, _ := open(t, Config{Holder: "a"})
	_, lock, err := b.Lock(t.Context())
	require.NoError(t, err)
	lock.cancel(nil) // its goroutine ends, so that lock is the test's
	<-lock.done
	before := lock.sequence
	require.NoError(t, lock.write(t.Context(), lock.message()))
	lock.sequence = before // all that is known without the acknowledgment
	if err := lock.write(t.Context(), lock.message()); err != nil {
		t.Errorf("our own lock is another's: %v", err)
	}
	if _, _, err := b.Lock(t.Context()); !errors.Is(err, ErrLocked) {
		t.Errorf("the lock is free: %v", err)
	}
}

// A lock from the future, where the broker's clock was set back, holds for no longer than its lease.
func TestLockAge(t *testing.T) {
	t.Parallel()
	held := lockMessage{Holder: "a", Lease: time.Minute}
	for age, want := range map[time.Duration]bool{0: true, 59 * time.Second: true, time.Minute: false, -59 * time.Second: true,
		-time.Minute: false, -365 * 24 * time.Hour: false} {
		if got := held.holds(age); got != want {
			t.Errorf("at the age of %s: held %v", age, got)
		}
	}
	if (lockMessage{Lease: time.Minute}).holds(0) {
		t.Error("held by no one")
	}
}
