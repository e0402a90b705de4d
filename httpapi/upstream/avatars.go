package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"
)

// The bounds on requests to the platform.
const (
	maxAtOnce = 32 // users
	perSecond = 20
)

// How much is cached, and for how long. Negative results are cached for less time than pictures:
// they are cheap, and a user may have just set a first picture.
const (
	cacheBytes    = 32 << 20
	pictureKept   = time.Hour
	noPictureKept = 10 * time.Minute
	failureKept   = time.Minute
	entryOverhead = 256 // bytes of an entry besides its picture, roughly
)

// AvatarConfig configures where the pictures of users come from. The zero value generates every
// picture.
type AvatarConfig struct {
	// API and CDN are the addresses of a Discord-compatible platform: both or neither.
	API, CDN string
	// Token is the bot's. If empty, the API is called without one.
	Token Secret

	timeout  time.Duration // of all calls for one picture; zero means callTimeout. For tests
	platform platform      // replaces API and CDN. For tests
}

// Check returns an error for bad addresses, for operators. New calls it too.
func (cfg AvatarConfig) Check() error {
	if (cfg.API == "") != (cfg.CDN == "") {
		return errors.New("the addresses of the chat platform's API and of its pictures go together")
	}
	if cfg.API == "" {
		if cfg.Token != "" {
			return errors.New("a token without the address of the chat platform's API")
		}
		return nil
	}
	api, err := ParseURL(cfg.API)
	if err != nil {
		return err
	}
	if _, err := ParseURL(cfg.CDN); err != nil {
		return err
	}
	if cfg.Token != "" && api.Scheme != "https" && !ownNetwork(api.Hostname()) {
		return errors.New("the token needs https unless the host is in a private network")
	}
	return nil
}

// ownNetwork reports whether a host can only be in the operator's own network.
func ownNetwork(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host != "" && !strings.Contains(host, ".")
}

// avatars caches pictures and requests the others from the platform: one request at a time for a
// user, for at most 32 users at once and 20 times a second. Any goroutine may use it.
type avatars struct {
	platform platform // nil if there is none
	timeout  time.Duration
	cache    *otter.Cache[avatarKey, cached]
	running  *shared[cached] // by user
	limiter  *rate.Limiter
	backOff  backOff
	room     func(bytes int) (release func(), err error) // nil for no bound
	logger   *slog.Logger
	logged   rate.Sometimes
}

// avatarKey names a cached value: a user's picture of a size or, with size 0, the picture's name.
type avatarKey struct {
	user string
	size int
}

// cached is the result of a request. The zero value is a failure.
type cached struct {
	result  avatarResult
	size    int     // the requested size; 0 for the picture's name
	name    string  // of the picture, with size 0
	picture picture // with any other size
}

type avatarResult uint8

const (
	avatarFailed avatarResult = iota // the platform failed or was busy: try again soon
	avatarNone                       // the user has no picture
	avatarFound
)

func resultOf(err error) avatarResult {
	switch {
	case err == nil:
		return avatarFound
	case errors.Is(err, errNoPicture):
		return avatarNone
	}
	return avatarFailed
}

func newAvatars(cfg AvatarConfig, m *metrics, work *background, logger *slog.Logger) (*avatars, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	a := &avatars{
		platform: cfg.platform,
		timeout:  cmp.Or(cfg.timeout, callTimeout),
		running:  newShared[cached](work, maxAtOnce),
		limiter:  rate.NewLimiter(perSecond, 1), // no bursts: any second has 20
		logger:   logger,
		logged:   rate.Sometimes{Interval: 10 * time.Second},
	}
	if a.platform == nil && cfg.API != "" {
		a.platform = newChatPlatform(cfg, m)
	}
	var err error
	a.cache, err = newAvatarCache(cacheBytes)
	return a, err
}

// newAvatarCache returns a cache of at most bytes bytes.
func newAvatarCache(bytes uint64) (*otter.Cache[avatarKey, cached], error) {
	return otter.New(&otter.Options[avatarKey, cached]{
		MaximumWeight: bytes,
		Weigher: func(key avatarKey, c cached) uint32 {
			return uint32(entryOverhead + len(key.user) + len(c.name) + len(c.picture.bytes))
		},
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[avatarKey, cached]) time.Duration {
			switch e.Value.result {
			case avatarFound:
				return pictureKept
			case avatarNone:
				return noPictureKept
			}
			return failureKept
		}),
		Clock:    cacheClock{time.Now()},
		Executor: func(task func()) { task() }, // runs in the caller's goroutine, so there is none to wait for
		Logger:   &otter.NoopLogger{},
	})
}

// cacheClock implements otter.Clock by the monotonic clock and without a goroutine: an expired
// entry is not found, and is evicted when room is needed.
type cacheClock struct{ start time.Time }

func (c cacheClock) NowNano() int64                    { return int64(time.Since(c.start)) }
func (cacheClock) Tick(time.Duration) <-chan time.Time { return nil }

// get returns a user's picture: at once if it is cached or cannot exist, else within the timeout.
// Its error is ctx's.
func (a *avatars) get(ctx context.Context, user string, size int) (cached, error) {
	if a.platform == nil || !issuedID(user) {
		return cached{result: avatarNone}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	for {
		if c, ok := a.known(user, size); ok {
			return c, nil
		}
		if !a.backOff.allows(time.Now()) {
			return cached{}, nil
		}
		key := avatarKey{user, size}
		c, err := a.running.do(bounded, user, func(ctx context.Context) cached { return a.fetch(ctx, key) })
		switch {
		case ctx.Err() != nil:
			return cached{}, ctx.Err()
		case err != nil, c.result != avatarFound:
			return cached{result: c.result}, nil
		case c.size == size:
			return c, nil
		} // otherwise another size was requested, and now it is this one's turn
	}
}

// issuedID reports whether a platform can have issued the id: 15 to 20 digits.
func issuedID(user string) bool {
	return len(user) >= 15 && len(user) <= 20 && strings.Trim(user, "0123456789") == ""
}

// known returns the cached result for a user and a size.
func (a *avatars) known(user string, size int) (cached, bool) {
	if c, ok := a.cache.GetIfPresent(avatarKey{user, size}); ok {
		return c, true
	}
	if c, ok := a.cache.GetIfPresent(avatarKey{user, 0}); ok && c.result != avatarFound {
		return c, true
	}
	return cached{}, false
}

// fetch requests one picture when its turn comes.
func (a *avatars) fetch(ctx context.Context, key avatarKey) cached {
	if c, ok := a.known(key.user, key.size); ok {
		return c // arrived just before
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if err := a.limiter.Wait(ctx); err != nil {
		return cached{} // the turn would come too late
	}
	began := time.Now()
	if !a.backOff.allows(began) {
		return cached{}
	}
	if a.room != nil {
		release, err := a.room(2 * maxPicture) // while it is read, it is there twice
		if err != nil {
			return cached{}
		}
		defer release()
	}
	c, err := a.ask(ctx, key)
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return cached{} // the server is stopping
	}
	a.backOff.record(began, err)
	if err != nil && !errors.Is(err, errNoPicture) { // one line in 10 s: the platform's state matters, not every picture
		a.logged.Do(func() { a.logger.Warn("chat platform gives no picture", "error", err.Error()) })
	}
	return c
}

// ask requests the picture's name, unless it is cached, and then the picture.
func (a *avatars) ask(ctx context.Context, key avatarKey) (cached, error) {
	name, ok := a.cache.GetIfPresent(avatarKey{key.user, 0})
	if !ok {
		text, err := a.platform.avatar(ctx, key.user)
		name = cached{name: text, result: resultOf(err)}
		a.cacheResult(avatarKey{key.user, 0}, name, err)
		if err != nil {
			return name, err
		}
	}
	found, err := a.platform.picture(ctx, key.user, name.name, key.size)
	if err == nil && len(found.bytes) > maxPicture {
		err = fmt.Errorf("more than %d bytes: %w", maxPicture, errUnusable)
	}
	c := cached{result: resultOf(err), size: key.size}
	if err == nil {
		c.picture = found
	}
	a.cacheResult(key, c, err)
	return c, err
}

// cacheResult caches every result except a rate limit, which is not about a user.
func (a *avatars) cacheResult(key avatarKey, c cached, err error) {
	if pause := (*pauseError)(nil); !errors.As(err, &pause) {
		a.cache.Set(key, c)
	}
}

func (a *avatars) closeIdle() {
	if chat, ok := a.platform.(*chatPlatform); ok {
		chat.client.CloseIdleConnections()
	}
}

// How long calls to a platform pause.
const (
	maxPause          = time.Hour // whatever it asks for
	minPause          = time.Second
	defaultPause      = 5 * time.Second // if it does not say how long
	unauthorisedPause = time.Minute
	longestBackOff    = time.Minute // after failures
	tolerated         = 2           // consecutive failures that may be accidents
)

// backOff pauses calls to the platform while it asks for that, and slows down calls to a failing
// one: from the third consecutive failure, the wait is 1 s, then 2 s, up to a minute. The zero
// value allows calls.
type backOff struct {
	mu       sync.Mutex
	until    time.Time // no calls before
	failures int       // consecutive
	counted  time.Time // when the last one was counted
}

// allows reports whether a call may begin now.
func (b *backOff) allows(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !now.Before(b.until)
}

// record records the outcome of a call that began at began. Concurrent failures count once.
func (b *backOff) record(began time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	var pause *pauseError
	switch {
	case errors.As(err, &pause):
		b.extend(now.Add(pauseFor(pause.wish)))
	case err == nil, errors.Is(err, errNoPicture), errors.Is(err, errUnusable):
		b.failures = 0
	case b.failures == 0 || !began.Before(b.counted):
		b.failures++
		b.counted = now
		if b.failures > tolerated {
			b.extend(now.Add(min(longestBackOff, minPause<<min(b.failures-tolerated-1, 10))))
		}
	}
}

func (b *backOff) extend(until time.Time) {
	if until.After(b.until) {
		b.until = until
	}
}

func pauseFor(wish time.Duration) time.Duration {
	if wish <= 0 {
		wish = defaultPause
	}
	return min(max(wish, minPause), maxPause)
}
