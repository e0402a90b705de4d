package upstream

import (
	"context"
	"errors"
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
	if c, ok := a.cache.GetIfPresent(avatarKey{user, size}); ok {
		return c
	}

	// No size can be fetched without the picture's name. If the name was not found, its result counts for every size.
	if c, ok := a.cache.GetIfPresent(avatarKey{user: user}); ok && c.result != avatarFound {
		return c
	}

	c, err := a.cache.Get(a.ctx, avatarKey{user, size}, avatarLoader(a.fetchInTurn))
	if err != nil {
		return cachedAvatar{result: avatarFailed}
	}
	return c
}

// isIssued reports whether a platform can have issued the id: 15 to 20 digits.
func isIssued(user string) bool {
	return len(user) >= 15 && len(user) <= 20 && strings.Trim(user, "0123456789") == ""
}

// avatarLoader makes a result for the cache. If it returns an error, nothing is cached.
type avatarLoader = otter.LoaderFunc[avatarKey, cachedAvatar]

var errNoTurn = errors.New("calls pause, or too many pictures are being fetched")

// fetchInTurn asks the platform for a picture: first for its name, unless the name is cached. If calls pause, or if too many
// pictures are being fetched already, it returns errNoTurn.
func (a *avatars) fetchInTurn(ctx context.Context, key avatarKey) (cachedAvatar, error) {
	// Take a slot. If all slots are taken, fail at once.
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		return cachedAvatar{}, errNoTurn
	}

	// Wait for a turn, since at most perSecond fetches begin in a second. If the turn would come after the deadline of ctx, Wait
	// fails at once. During the wait, another fetch may have failed and caused a pause.
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := a.limiter.Wait(ctx); err != nil || a.isPaused() {
		return cachedAvatar{}, errNoTurn
	}

	// Concurrent requests for several sizes of the picture share one call for its name.
	named, err := a.cache.Get(ctx, avatarKey{user: key.user}, avatarLoader(a.fetchName))
	if err != nil || named.result != avatarFound {
		return named, err
	}

	media, picture, err := a.platform.fetchPicture(ctx, key.user, named.name, key.size)
	return a.toResult(cachedAvatar{media: media, bytes: picture}, err)
}

func (a *avatars) fetchName(ctx context.Context, key avatarKey) (cachedAvatar, error) {
	name, err := a.platform.findName(ctx, key.user)
	return a.toResult(cachedAvatar{name: name}, err)
}

// toResult returns what to cache after a call that returned c or err. If the platform failed, calls pause. toResult returns an
// error if the failure says nothing about the user: the platform asks for a pause, or this server is stopping.
func (a *avatars) toResult(c cachedAvatar, err error) (cachedAvatar, error) {
	switch outcomeOf(err) {
	case outcomeOK:
		c.result = avatarFound
		return c, nil
	case outcomeNotFound:
		return cachedAvatar{result: avatarNone}, nil
	}
	if a.ctx.Err() != nil {
		return cachedAvatar{}, err
	}

	a.pauseFor(pauseAfter(err))
	a.logged.Do(func() { a.logger.Warn("chat platform gives no picture", "error", err.Error()) })
	if failure, ok := errors.AsType[*callError](err); ok && failure.pause != 0 {
		return cachedAvatar{}, err
	}
	return cachedAvatar{result: avatarFailed}, nil
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
