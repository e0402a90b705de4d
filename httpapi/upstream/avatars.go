package upstream

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

// The bounds on requests to the platform.
const (
	maxAtOnce = 32 // pictures
	perSecond = 20
)

// How much is cached, and for how long. What is not a picture is cached for less time: it is cheap, and
// a user may have just set a first one.
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
}

// Check returns an error for bad addresses, for operators. New calls it too.
func (cfg AvatarConfig) Check() error {
	if (cfg.API == "") != (cfg.CDN == "") {
		return errors.New("the addresses of the chat platform's API and of its pictures go together")
	}
	if cfg.API == "" && cfg.Token != "" {
		return errors.New("a token without the address of the chat platform's API")
	}
	if cfg.API == "" {
		return nil
	}

	api, err := ParseURL(cfg.API)
	if err != nil {
		return err
	}
	if _, err := ParseURL(cfg.CDN); err != nil {
		return err
	}
	if cfg.Token != "" && api.Scheme != "https" && !isPrivateHost(api.Hostname()) {
		return errors.New("the token needs https unless the host is in a private network")
	}
	return nil
}

// avatars finds pictures: in its cache, or on the platform, at most 32 at once and 20 a second.
type avatars struct {
	ctx      context.Context // of the calls
	platform *platform       // nil if there is none
	icons    identicons
	cache    *otter.Cache[avatarKey, cached]
	running  singleflight.Group
	slots    chan struct{} // one for each running call
	limiter  *rate.Limiter
	backOff  backOff
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
	result avatarResult
	name   string // of the picture
	kind   string // media type
	bytes  []byte // shared, must not be modified
}

type avatarResult uint8

const (
	avatarFailed avatarResult = iota // the platform failed or was busy: try again soon
	avatarNone                       // the user has no picture
	avatarFound
)

func newAvatars(ctx context.Context, cfg Config, m *metrics) (*avatars, error) {
	if err := cfg.Avatars.Check(); err != nil {
		return nil, err
	}
	cache, err := newAvatarCache(cacheBytes)
	if err != nil {
		return nil, err
	}

	a := &avatars{
		ctx:     ctx,
		cache:   cache,
		slots:   make(chan struct{}, maxAtOnce),
		limiter: rate.NewLimiter(perSecond, 1), // no bursts: any second has 20
		logger:  cfg.Logger,
		logged:  rate.Sometimes{Interval: 10 * time.Second}, // the platform's state matters, not every picture
	}
	if cfg.Avatars.API != "" {
		a.platform = &platform{
			api: strings.TrimRight(cfg.Avatars.API, "/"), cdn: strings.TrimRight(cfg.Avatars.CDN, "/"),
			token: cfg.Avatars.Token, client: newClient(cfg, m),
		}
	}
	return a, nil
}

// newAvatarCache returns a cache of at most bytes bytes.
func newAvatarCache(bytes uint64) (*otter.Cache[avatarKey, cached], error) {
	return otter.New(&otter.Options[avatarKey, cached]{
		MaximumWeight: bytes,
		Weigher: func(key avatarKey, c cached) uint32 {
			return uint32(entryOverhead + len(key.user) + len(c.name) + len(c.bytes))
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

// find returns a user's picture: at once if it is cached or cannot exist, else within callTimeout.
// Whoever asks for it meanwhile shares the calls.
func (a *avatars) find(user string, size int) cached {
	if a.platform == nil || !isIssued(user) {
		return cached{result: avatarNone}
	}
	key := avatarKey{user, size}
	if c, ok := a.known(key); ok {
		return c
	}

	found, _, _ := a.running.Do(user+" "+strconv.Itoa(size), func() (any, error) { return a.fetch(key), nil })
	return found.(cached)
}

// isIssued reports whether a platform can have issued the id: 15 to 20 digits.
func isIssued(user string) bool {
	return len(user) >= 15 && len(user) <= 20 && strings.Trim(user, "0123456789") == ""
}

// known returns the cached result for a user and a size.
func (a *avatars) known(key avatarKey) (cached, bool) {
	if c, ok := a.cache.GetIfPresent(key); ok {
		return c, true
	}
	name, ok := a.cache.GetIfPresent(avatarKey{key.user, 0})
	return name, ok && name.result != avatarFound
}

// fetch asks the platform when its turn comes.
func (a *avatars) fetch(key avatarKey) cached {
	if c, ok := a.known(key); ok {
		return c // arrived just before
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		return cached{} // busy
	}
	ctx, cancel := context.WithTimeout(a.ctx, callTimeout)
	defer cancel()
	if a.limiter.Wait(ctx) != nil {
		return cached{} // the turn would come too late
	}
	if !a.backOff.allows() {
		return cached{}
	}

	began := time.Now()
	c, err := a.ask(ctx, key)
	if a.ctx.Err() != nil {
		return cached{} // the server is stopping
	}
	a.backOff.record(began, err)
	if err != nil {
		a.logged.Do(func() { a.logger.Warn("chat platform gives no picture", "error", err.Error()) })
	}
	return c
}

// ask asks for the picture's name, unless it is cached, and then for the picture. Every result is
// cached but a request to be left alone, which is not about a user.
func (a *avatars) ask(ctx context.Context, key avatarKey) (cached, error) {
	name, err := a.askName(ctx, key.user)
	if err != nil || name.result != avatarFound {
		return name, err
	}

	kind, picture, err := a.platform.fetchPicture(ctx, key.user, name.name, key.size)
	c := cached{result: resultOf(err), kind: kind, bytes: picture}
	a.keep(key, c, err)
	if c.result == avatarNone {
		return c, nil
	}
	return c, err
}

// askName is shared by requests for several sizes of a user's picture.
func (a *avatars) askName(ctx context.Context, user string) (cached, error) {
	found, err, _ := a.running.Do(user, func() (any, error) {
		key := avatarKey{user, 0}
		if c, ok := a.cache.GetIfPresent(key); ok {
			return c, nil
		}
		name, err := a.platform.findName(ctx, user)
		c := cached{result: resultOf(err), name: name}
		if err == nil && name == "" {
			c.result = avatarNone
		}
		a.keep(key, c, err)
		return c, err
	})
	return found.(cached), err
}

func resultOf(err error) avatarResult {
	switch outcomeOf(err) {
	case outcomeOK:
		return avatarFound
	case outcomeNotFound:
		return avatarNone
	}
	return avatarFailed
}

func (a *avatars) keep(key avatarKey, c cached, err error) {
	if failure, ok := errors.AsType[*callError](err); !ok || failure.pause == 0 {
		a.cache.Set(key, c)
	}
}

func (a *avatars) closeIdle() {
	if a.platform != nil {
		a.platform.client.http.CloseIdleConnections()
	}
}
