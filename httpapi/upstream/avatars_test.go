package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// panics is a platform that does.
type panics struct{}

func (panics) avatar(context.Context, string) (string, error) { panic("platform on fire") }

func (panics) picture(context.Context, string, string, int) (picture, error) { panic("not reached") }

// A panic in background work is a failure of the platform.
func TestPlatformThatPanics(t *testing.T) {
	f := serve(t, func(cfg *Config) { cfg.Avatars.platform = panics{} })
	f.wantAvatar(t, someUser, 128, "", "", true)
	f.Close() // waits for the log line
	if !strings.Contains(f.log.String(), "platform on fire") {
		t.Errorf("log %q", f.log)
	}
}

// fakePlatform is a platform without a network. Its fields are set before it is asked.
type fakePlatform struct {
	takes time.Duration
	fails func(user string) error

	mu       sync.Mutex
	avatars  []time.Time
	pictures int
	atOnce   int
	most     int
}

func (p *fakePlatform) avatar(ctx context.Context, user string) (string, error) {
	p.mu.Lock()
	p.avatars = append(p.avatars, time.Now())
	p.atOnce++
	p.most = max(p.most, p.atOnce)
	p.mu.Unlock()
	defer func() { p.mu.Lock(); p.atOnce--; p.mu.Unlock() }()
	if p.takes > 0 {
		select {
		case <-time.After(p.takes):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if p.fails != nil {
		return "", p.fails(user)
	}
	return "name", nil
}

func (p *fakePlatform) picture(_ context.Context, _, _ string, size int) (picture, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pictures++
	return picture{"image/png", []byte(strconv.Itoa(size))}, nil
}

func (p *fakePlatform) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.avatars)
}

// inBubble runs a test with a clock of its own.
func inBubble(t *testing.T, p *fakePlatform, test func(t *testing.T, a *avatars)) {
	synctest.Test(t, func(t *testing.T) {
		logger := slog.New(slog.DiscardHandler)
		work := newBackground(logger)
		defer work.close()
		a, err := newAvatars(AvatarConfig{platform: p}, newMetrics(nil), work, logger)
		require.NoError(t, err)
		test(t, a)
	})
}

func userNo(i int) string { return strconv.Itoa(100000000000000000 + i) }

func wantResult(t *testing.T, a *avatars, user string, want avatarResult) {
	t.Helper()
	got, err := a.get(t.Context(), user, 128)
	if err != nil || got.result != want {
		t.Errorf("at %v: %+v %v, want %v", time.Now(), got, err, want)
	}
}

// Pictures are kept an hour, their absence ten minutes, a failure one; not a moment longer.
func TestHowLongAvatarsAreKept(t *testing.T) {
	for _, c := range []struct {
		err  error
		want avatarResult
		kept time.Duration
	}{
		{nil, avatarFound, pictureKept},
		{errNoPicture, avatarNone, noPictureKept},
		{fmt.Errorf("too large: %w", errUnusable), avatarFailed, failureKept},
		{errors.New("cut off"), avatarFailed, failureKept},
	} {
		p := &fakePlatform{}
		if c.err != nil {
			p.fails = func(string) error { return c.err }
		}
		inBubble(t, p, func(t *testing.T, a *avatars) {
			wantResult(t, a, userNo(1), c.want)
			time.Sleep(c.kept - time.Millisecond)
			wantResult(t, a, userNo(1), c.want)
			if n := p.asked(); n != 1 {
				t.Errorf("%v: asked %d times", c.err, n)
			}
			time.Sleep(2 * time.Millisecond)
			wantResult(t, a, userNo(1), c.want)
			if n := p.asked(); n != 2 {
				t.Errorf("%v: asked %d times after %v", c.err, n, c.kept)
			}
		})
	}
}

// At most 32 at once, at most 20 in any second; who would have to wait longer than the timeout, or
// is the 33rd, is told at once.
func TestHowManyAvatarsAreAskedFor(t *testing.T) {
	p := &fakePlatform{takes: 2 * time.Second}
	inBubble(t, p, func(t *testing.T, a *avatars) {
		var group sync.WaitGroup
		var mu sync.Mutex
		results := map[avatarResult]int{}
		began := time.Now()
		for second := range 30 {
			for i := range 100 {
				group.Go(func() {
					k, err := a.get(t.Context(), userNo(second*100+i), 128)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					results[k.result]++
					mu.Unlock()
				})
			}
			time.Sleep(time.Second)
		}
		group.Wait()
		if p.most > maxAtOnce || p.most < maxAtOnce-1 {
			t.Errorf("%d at once", p.most)
		}
		for i, at := range p.avatars {
			if i >= perSecond && at.Sub(p.avatars[i-perSecond]) < time.Second-time.Microsecond {
				t.Errorf("more than %d within a second, at %v", perSecond, at.Sub(began))
			}
		}
		if results[avatarFound] < 100 || results[avatarFailed] < 1000 || results[avatarFound] != p.pictures {
			t.Errorf("%v", results)
		}
	})
}

// Sizes are asked for one after the other, the user once.
func TestSizesOfOneUser(t *testing.T) {
	p := &fakePlatform{takes: time.Second}
	inBubble(t, p, func(t *testing.T, a *avatars) {
		var group sync.WaitGroup
		for range 50 {
			for _, size := range avatarSizes() {
				group.Go(func() {
					k, err := a.get(t.Context(), userNo(1), size)
					if err != nil || string(k.picture.bytes) != strconv.Itoa(size) {
						t.Errorf("%d: %+v %v", size, k, err)
					}
				})
			}
		}
		group.Wait()
		if p.asked() != 1 || p.pictures != len(avatarSizes()) {
			t.Errorf("%d questions about the user, %d for pictures", p.asked(), p.pictures)
		}
	})
}

// Nobody waits longer than the timeout, and the work ends then too.
func TestPlatformThatHangs(t *testing.T) {
	p := &fakePlatform{takes: time.Hour}
	inBubble(t, p, func(t *testing.T, a *avatars) {
		began := time.Now()
		wantResult(t, a, userNo(1), avatarFailed)
		if took := time.Since(began); took != callTimeout {
			t.Errorf("waited %v", took)
		}
		synctest.Wait()
		if p.atOnce != 0 {
			t.Error("still asking")
		}
	})
}

// The first reader's leaving cancels nothing for the others.
func TestAvatarOutlivesItsFirstReader(t *testing.T) {
	p := &fakePlatform{takes: 3 * time.Second}
	inBubble(t, p, func(t *testing.T, a *avatars) {
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { _, err := a.get(ctx, userNo(1), 128); first <- err }()
		time.Sleep(time.Second)
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the reader who left got %v", err)
		}
		wantResult(t, a, userNo(1), avatarFound)
		if p.asked() != 1 {
			t.Errorf("asked %d times", p.asked())
		}
	})
}

// A platform that wishes to be left alone is left alone, for as long as it said and an hour at
// most.
func TestPause(t *testing.T) {
	for told, want := range map[time.Duration]time.Duration{
		0: defaultPause, time.Millisecond: minPause, 7 * time.Second: 7 * time.Second, 240 * time.Hour: maxPause,
	} {
		p := &fakePlatform{fails: func(string) error { return fmt.Errorf("api: %w", &pauseError{told, errors.New("429")}) }}
		inBubble(t, p, func(t *testing.T, a *avatars) {
			wantResult(t, a, userNo(1), avatarFailed)
			p.fails = nil
			for i := range 50 {
				wantResult(t, a, userNo(i), avatarFailed)
			}
			time.Sleep(want - time.Millisecond)
			wantResult(t, a, userNo(1), avatarFailed)
			if p.asked() != 1 {
				t.Errorf("told %v: asked %d times", told, p.asked())
			}
			time.Sleep(time.Millisecond)
			wantResult(t, a, userNo(1), avatarFound) // a wish concerns no user
		})
	}
}

// One failure is an accident; from the third in a row the platform gets ever more time. Failures
// side by side are one, and an answer ends the row.
func TestBackOff(t *testing.T) {
	p := &fakePlatform{fails: func(string) error { return errors.New("status 500") }}
	inBubble(t, p, func(t *testing.T, a *avatars) {
		asked := 0
		for _, pause := range []time.Duration{0, 0, 1, 2, 4, 8, 16, 32, 60, 60} {
			wantResult(t, a, userNo(asked), avatarFailed)
			if asked++; p.asked() != asked {
				t.Fatalf("asked %d times, want %d", p.asked(), asked)
			}
			time.Sleep(max(0, pause*time.Second-time.Millisecond))
			if pause > 0 {
				wantResult(t, a, userNo(1000+asked), avatarFailed)
			}
			if p.asked() != asked {
				t.Fatalf("asked within a pause of %d s", pause)
			}
			time.Sleep(time.Millisecond)
		}
		p.fails = nil
		wantResult(t, a, userNo(asked), avatarFound)
		p.fails = func(string) error { return errors.New("status 500") }
		p.takes = time.Second
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() { wantResult(t, a, userNo(2000+i), avatarFailed) })
		}
		group.Wait()
		if !a.backOff.allows(time.Now()) {
			t.Error("failures side by side were taken for a row")
		}
	})
}

// The cache keeps within its bytes.
func TestAvatarCacheIsBounded(t *testing.T) {
	cache, err := newAvatarCache(1 << 20)
	require.NoError(t, err)
	for i := range 1000 {
		cache.Set(avatarKey{userNo(i), 128}, cached{result: avatarFound, picture: picture{"image/png", make([]byte, 10<<10)}})
		cache.Set(avatarKey{userNo(i), 0}, cached{result: avatarNone})
	}
	cache.CleanUp()
	if bytes := cache.WeightedSize(); bytes > 1<<20 || bytes < 1<<19 {
		t.Errorf("%d bytes", bytes)
	}
}

// Work that is closed is not started, and what is refused is an overload, not a failure.
func TestShared(t *testing.T) {
	work := newBackground(slog.New(slog.DiscardHandler))
	f := newShared[int](work, 1)
	inside, free := make(chan struct{}), make(chan struct{})
	done := make(chan int)
	go func() {
		v, _ := f.do(t.Context(), "1", func(context.Context) int { close(inside); <-free; return 7 })
		done <- v
	}()
	<-inside
	if _, err := f.do(t.Context(), "2", func(context.Context) int { return 0 }); !errors.Is(err, errBusy) {
		t.Errorf("one too many: %v", err)
	}
	close(free)
	if v := <-done; v != 7 {
		t.Errorf("%d", v)
	}
	if v, err := f.do(t.Context(), "1", func(context.Context) int { panic("x") }); v != 0 || err != nil {
		t.Errorf("a panic: %d %v", v, err)
	}
	work.close()
	if _, err := f.do(t.Context(), "3", func(context.Context) int { return 0 }); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
