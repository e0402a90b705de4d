package httpapi

import (
	"context"
	"errors"
	"fmt"
)

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
