package httpapi

import (
	"context"
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

// issuedID says whether a platform can have issued the id: 15 to 20 digits (API contract,
// avatars).
func issuedID(user string) bool { return len(user) >= 15 && len(user) <= 20 && digits(user) }
