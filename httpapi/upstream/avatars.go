package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

// The bounds on requests to the platform.
const (
	maxAtOnce = 32 // fetches of a picture at a time
	perSecond = 20 // fetches that begin in a second
)

// The bounds of the cache. A missing picture is cached for less time than a picture, since the user may soon set a first one.
const (
	cacheBytes    = 32 << 20
	pictureKept   = time.Hour
	noPictureKept = 10 * time.Minute
	failureKept   = time.Minute
	entryOverhead = 256 // bytes of an entry without its texts and its picture, roughly
)

// The bounds of the pause in calls to the platform after a failure.
const (
	minPause    = time.Second
	maxPause    = time.Hour   // even if the platform asks for more
	deniedPause = time.Minute // if the platform does not accept the token
)

// AvatarConfig configures where the pictures of users come from. The zero value generates every picture.
type AvatarConfig struct {
	API, CDN string // the addresses of a Discord-compatible platform: both or neither
	Token    string // the bot's; if empty, the API is called without one
}

// Check returns an error for a bad configuration. Its text is for operators.
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

	isExposed := api.Scheme != "https" && !isPrivateHost(api.Hostname())
	if cfg.Token != "" && isExposed {
		return errors.New("the token needs https unless the host is in a private network")
	}
	return nil
}

// isPrivateHost reports whether a host is in the operator's own network: a private or loopback address, localhost, or a name
// without a dot.
func isPrivateHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".")
}

// avatars finds pictures: in its cache, or on the platform, at most 32 at once and 20 a second.
type avatars struct {
	ctx      context.Context // of the calls; ends when the server stops
	platform *platform       // nil if there is none
	cache    *otter.Cache[avatarKey, cachedAvatar]
	running  singleflight.Group
	slots    chan struct{} // has one element for each picture that is being fetched
	limiter  *rate.Limiter
	logger   *slog.Logger
	logged   rate.Sometimes // bounds how often a failure is logged

	mu          sync.Mutex
	pausedUntil time.Time // no call begins before
}

// avatarKey is the key of a cached result: a user's picture in this size or, if size is 0, the name of the picture.
type avatarKey struct {
	user string
	size int
}

func nameKey(user string) avatarKey { return avatarKey{user: user, size: 0} }

// cachedAvatar is the result of a call: the name of a picture, or the picture. The zero value is a failure.
type cachedAvatar struct {
	result avatarResult
	name   string
	media  string
	bytes  []byte // shared, must not be modified
}

type avatarResult uint8

const (
	avatarFailed avatarResult = iota // the platform failed or was busy: try again soon
	avatarNone                       // the user has no picture
	avatarFound
)

func newAvatars(ctx context.Context, cfg Config, client *client) *avatars {
	a := &avatars{
		ctx:     ctx,
		cache:   newAvatarCache(cacheBytes),
		slots:   make(chan struct{}, maxAtOnce),
		limiter: rate.NewLimiter(perSecond, 1), // without bursts, so that no second has more than perSecond
		logger:  cfg.Logger,
		logged:  rate.Sometimes{Interval: 10 * time.Second}, // the platform's state matters, not every picture
	}

	if cfg.Avatars.API != "" {
		a.platform = &platform{
			api:    strings.TrimRight(cfg.Avatars.API, "/"),
			cdn:    strings.TrimRight(cfg.Avatars.CDN, "/"),
			token:  cfg.Avatars.Token,
			client: client,
		}
	}
	return a
}

// newAvatarCache returns a cache of at most bytes bytes.
func newAvatarCache(bytes uint64) *otter.Cache[avatarKey, cachedAvatar] {
	kept := [...]time.Duration{avatarFailed: failureKept, avatarNone: noPictureKept, avatarFound: pictureKept}
	return otter.Must(&otter.Options[avatarKey, cachedAvatar]{
		MaximumWeight: bytes,
		Weigher: func(key avatarKey, c cachedAvatar) uint32 {
			return uint32(entryOverhead + len(key.user) + len(c.name) + len(c.bytes))
		},
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[avatarKey, cachedAvatar]) time.Duration {
			return kept[e.Value.result]
		}),
		Clock:    cacheClock{time.Now()},
		Executor: func(task func()) { task() }, // in the caller's goroutine, so the cache has no goroutine to wait for
		Logger:   &otter.NoopLogger{},
	})
}

// cacheClock implements otter.Clock by the monotonic clock. It never ticks, so no goroutine evicts expired entries: the cache
// does not return them, and evicts them when it needs room.
type cacheClock struct{ start time.Time }

func (c cacheClock) NowNano() int64                    { return int64(time.Since(c.start)) }
func (cacheClock) Tick(time.Duration) <-chan time.Time { return nil }

// findPicture returns a user's picture: at once if the picture is cached or cannot exist, else within callTimeout. Concurrent
// requests for the same picture share one fetch.
func (a *avatars) findPicture(user string, size int) cachedAvatar {
	if a.platform == nil || !isIssued(user) {
		return cachedAvatar{result: avatarNone}
	}
	key := avatarKey{user, size}
	if c, ok := a.findCached(key); ok {
		return c
	}

	found, _, _ := a.running.Do(user+" "+strconv.Itoa(size), func() (any, error) { return a.fetchInTurn(key), nil })
	return found.(cachedAvatar)
}

// isIssued reports whether a platform can have issued the id: 15 to 20 digits.
func isIssued(user string) bool {
	return len(user) >= 15 && len(user) <= 20 && strings.Trim(user, "0123456789") == ""
}

// findCached returns the cached result for a user and a size.
func (a *avatars) findCached(key avatarKey) (cachedAvatar, bool) {
	if c, ok := a.cache.GetIfPresent(key); ok {
		return c, true
	}

	// No size can be fetched without the picture's name. If the name was not found, its result counts for every size.
	c, ok := a.cache.GetIfPresent(nameKey(key.user))
	return c, ok && c.result != avatarFound
}

// fetchInTurn asks the platform for a picture. It returns a failure at once if calls pause, or if too many pictures are being
// fetched already.
func (a *avatars) fetchInTurn(key avatarKey) cachedAvatar {
	// Another request may have cached the picture since findPicture looked.
	if c, ok := a.findCached(key); ok {
		return c
	}

	// Take a slot. If all slots are taken, fail at once.
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		return cachedAvatar{result: avatarFailed}
	}

	// Wait for a turn, since at most perSecond fetches begin in a second. If the turn would come after the deadline of ctx, Wait
	// fails at once. During the wait, another fetch may have failed and caused a pause.
	ctx, cancel := context.WithTimeout(a.ctx, callTimeout)
	defer cancel()
	if err := a.limiter.Wait(ctx); err != nil || a.isPaused() {
		return cachedAvatar{result: avatarFailed}
	}

	c, err := a.fetch(ctx, key)

	// If this server is stopping, the failure is not the platform's.
	isStopping := a.ctx.Err() != nil
	if isStopping {
		return cachedAvatar{result: avatarFailed}
	}
	if err != nil {
		a.pauseFor(pauseAfter(err))
		a.logged.Do(func() { a.logger.Warn("chat platform gives no picture", "error", err.Error()) })
	}
	return c
}

// fetch asks for the picture's name, unless the name is cached, and then for the picture. If the platform fails, fetch returns an
// error. A missing picture is no failure.
func (a *avatars) fetch(ctx context.Context, key avatarKey) (cachedAvatar, error) {
	named, err := a.fetchName(ctx, key.user)
	if err != nil || named.result != avatarFound {
		return named, err
	}

	media, picture, err := a.platform.fetchPicture(ctx, key.user, named.name, key.size)
	c := cachedAvatar{result: resultOf(err), media: media, bytes: picture}
	a.keep(key, c, err)
	if c.result == avatarNone {
		return c, nil
	}
	return c, err
}

// fetchName returns the name of a user's picture. Concurrent requests for several sizes of the picture share one call. The
// key in running is the user alone, so it never equals a key of findPicture, which has a size, too.
func (a *avatars) fetchName(ctx context.Context, user string) (cachedAvatar, error) {
	found, err, _ := a.running.Do(user, func() (any, error) {
		key := nameKey(user)
		if c, ok := a.cache.GetIfPresent(key); ok {
			return c, nil
		}

		name, err := a.platform.findName(ctx, user)
		c := cachedAvatar{result: resultOf(err), name: name}
		if err == nil && name == "" {
			c.result = avatarNone
		}

		a.keep(key, c, err)
		return c, err
	})
	return found.(cachedAvatar), err
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

// keep caches a result, unless the platform asks for a pause: that answer says nothing about the user.
func (a *avatars) keep(key avatarKey, c cachedAvatar, err error) {
	failure, ok := errors.AsType[*callError](err)
	asksForPause := ok && failure.pause != 0
	if !asksForPause {
		a.cache.Set(key, c)
	}
}

// pauseAfter returns for how long calls pause after a failure. An unusable answer may concern one user alone, so it causes a
// pause only if the platform asks for one.
func pauseAfter(err error) time.Duration {
	failure, ok := errors.AsType[*callError](err)
	if !ok {
		return minPause
	}
	if failure.outcome == outcomeUnusable && failure.pause == 0 {
		return 0
	}
	return min(max(failure.pause, minPause), maxPause)
}

func (a *avatars) pauseFor(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if until := time.Now().Add(d); until.After(a.pausedUntil) {
		a.pausedUntil = until
	}
}

func (a *avatars) isPaused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.pausedUntil)
}
