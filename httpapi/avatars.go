package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"
)

// The bounds on asking the platform (API contract, avatars).
const (
	maxAtOnce = 32
	perSecond = 20
)

// AvatarConfig says where pictures of users come from. The zero value: every picture is drawn.
type AvatarConfig struct {
	// API and CDN are the addresses of a Discord-compatible platform: both or neither. A name
	// that resolves to an address that is not public is not connected to, unless it is an address
	// itself, localhost or a name without a dot.
	API, CDN string
	// Token is the bot's. Empty: the API is asked without one.
	Token Secret
	// Platform is asked in place of API and CDN. Nil: those are.
	Platform Platform
	// CacheBytes bounds the pictures kept. Zero: 32 MiB.
	CacheBytes int
	// Timeout bounds all that is asked for one picture, waiting for its turn included. Zero: 6 s.
	Timeout time.Duration
}

// Check says what is wrong with the addresses, for operators. NewPublic calls it too.
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
	for _, address := range []string{cfg.API, cfg.CDN} {
		if _, err := upstreamURL(address); err != nil {
			return err
		}
	}
	if api, _ := upstreamURL(cfg.API); cfg.Token != "" && api.Scheme != "https" && !ownNetwork(api.Hostname()) {
		return errors.New("the token may cross the public network by https alone")
	}
	return nil
}

// avatarKey is what is remembered: a user's picture of a size, or (size 0) the picture's name.
type avatarKey struct {
	user string
	size int
}

// kept is what came of asking. The zero value is a failure.
type kept struct {
	result  avatarResult
	size    int     // that was asked for; 0: the picture's name was
	name    string  // of the picture, with size 0
	picture Picture // with any other
}

type avatarResult uint8

const (
	avatarFailed avatarResult = iota // the platform failed or was busy: ask again soon
	avatarNone                       // there is no picture
	avatarFound
)

// avatars remembers pictures and asks the platform for the others: once for one user at a time,
// at most 32 users at once and 20 a second. Any goroutine may use it.
type avatars struct {
	platform Platform // nil: there is none
	timeout  time.Duration
	cache    *otter.Cache[avatarKey, kept]
	flights  *flights[string, kept]
	limiter  *rate.Limiter
	pause    *backOff
	logger   *slog.Logger
	logged   rate.Sometimes
}

func newAvatars(cfg AvatarConfig, m *upstreamMetrics, work *detached, logger *slog.Logger) (*avatars, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	a := &avatars{
		platform: cfg.Platform,
		timeout:  cfg.Timeout,
		flights:  newFlights[string, kept](work, maxAtOnce),
		limiter:  rate.NewLimiter(perSecond, 1), // no bursts: any second has 20
		pause:    &backOff{clock: monotonic{time.Now()}},
		logger:   logger,
		logged:   rate.Sometimes{Interval: 10 * time.Second},
	}
	if a.timeout == 0 {
		a.timeout = upstreamTimeout
	}
	if a.platform == nil && cfg.API != "" {
		chat, err := newChatPlatform(cfg, m)
		if err != nil {
			return nil, err
		}
		a.platform = chat
	}
	var err error
	a.cache, err = newAvatarCache(cfg.CacheBytes)
	return a, err
}

// of is what there is of a user's picture, at once where it is known or not to be had, else
// within the timeout. Its error is ctx's.
func (a *avatars) of(ctx context.Context, user string, size int) (kept, error) {
	if a.platform == nil || !issuedID(user) {
		return kept{result: avatarNone}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	for {
		if k, known := a.known(user, size); known {
			return k, nil
		}
		if _, ask := a.pause.now(); !ask {
			return kept{}, nil
		}
		key := avatarKey{user, size}
		k, err := a.flights.do(bounded, user, func(ctx context.Context) kept { return a.fetch(ctx, key) })
		switch {
		case ctx.Err() != nil:
			return kept{}, ctx.Err()
		case err != nil, k.result != avatarFound:
			return kept{result: k.result}, nil
		case k.size == size:
			return k, nil
		} // else that was the flight of another size: now this one has its turn
	}
}

// known is what is remembered for a user in a size.
func (a *avatars) known(user string, size int) (kept, bool) {
	if k, ok := a.cache.GetIfPresent(avatarKey{user, size}); ok {
		return k, true
	}
	if k, ok := a.cache.GetIfPresent(avatarKey{user, 0}); ok && k.result != avatarFound {
		return k, true
	}
	return kept{}, false
}

// fetch asks for one picture, when its turn has come.
func (a *avatars) fetch(ctx context.Context, key avatarKey) kept {
	if k, known := a.known(key.user, key.size); known {
		return k // of a flight that ended just before this one began
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if err := a.limiter.Wait(ctx); err != nil {
		return kept{} // the turn would come too late
	}
	began, ask := a.pause.now()
	if !ask {
		return kept{}
	}
	k, err := a.ask(ctx, key)
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return kept{} // the server stops
	}
	a.pause.note(began, err)
	a.report(err)
	return k
}

// ask asks for the picture's name, unless that is known, and then for the picture.
func (a *avatars) ask(ctx context.Context, key avatarKey) (kept, error) {
	name, ok := a.cache.GetIfPresent(avatarKey{key.user, 0})
	if !ok {
		text, err := a.platform.Avatar(ctx, key.user)
		name = kept{name: text, result: resultOf(err)}
		a.remember(avatarKey{key.user, 0}, name, err)
		if err != nil {
			return name, err
		}
	}
	picture, err := a.platform.Picture(ctx, key.user, name.name, key.size)
	if err == nil && len(picture.Bytes) > maxPicture {
		err = fmt.Errorf("more than %d bytes: %w", maxPicture, ErrUnusable)
	}
	k := kept{result: resultOf(err), size: key.size}
	if err == nil {
		k.picture = picture
	}
	a.remember(key, k, err)
	return k, err
}

// remember keeps everything but a wish to be left alone, which concerns no user.
func (a *avatars) remember(key avatarKey, k kept, err error) {
	if pause := (*Pause)(nil); !errors.As(err, &pause) {
		a.cache.Set(key, k)
	}
}

// report logs a failure, one in 10 s: the platform's state matters, not every picture.
func (a *avatars) report(err error) {
	if err == nil || errors.Is(err, ErrNoPicture) {
		return
	}
	a.logged.Do(func() { a.logger.Warn("chat platform gives no picture", "error", err.Error()) })
}

func resultOf(err error) avatarResult {
	switch {
	case err == nil:
		return avatarFound
	case errors.Is(err, ErrNoPicture):
		return avatarNone
	}
	return avatarFailed
}

// issuedID says whether a platform can have issued the id: 15 to 20 digits (API contract,
// avatars).
func issuedID(user string) bool { return len(user) >= 15 && len(user) <= 20 && digits(user) }
