package httpapi

import (
	"time"

	"github.com/maypok86/otter/v2"
)

// What is kept, and for how long (API contract, avatars). Negative answers are kept shorter than
// pictures: they are cheap, and somebody may be waiting for the first picture.
const (
	cacheBytes    = 32 << 20
	pictureKept   = time.Hour
	noPictureKept = 10 * time.Minute
	failureKept   = time.Minute
	entryOverhead = 256 // bytes of an entry besides its picture, roughly
)

// newAvatarCache keeps so many bytes; 0 means 32 MiB.
func newAvatarCache(bytes int) (*otter.Cache[avatarKey, kept], error) {
	if bytes == 0 {
		bytes = cacheBytes
	}
	return otter.New(&otter.Options[avatarKey, kept]{
		MaximumWeight: uint64(bytes),
		Weigher: func(key avatarKey, k kept) uint32 {
			return uint32(entryOverhead + len(key.user) + len(k.name) + len(k.picture.Bytes))
		},
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[avatarKey, kept]) time.Duration {
			switch e.Value.result {
			case avatarFound:
				return pictureKept
			case avatarNone:
				return noPictureKept
			}
			return failureKept
		}),
		Clock: cacheClock{monotonic{time.Now()}},
		// Its upkeep is done by whoever calls it, so that no goroutine has to be waited for.
		Executor: func(task func()) { task() },
		Logger:   &otter.NoopLogger{},
	})
}

// cacheClock makes entries expire by a clock that nobody sets, and without a goroutine: one that
// has expired is not found, and makes room when it is needed.
type cacheClock struct{ monotonic }

// NowNano implements otter.Clock.
func (c cacheClock) NowNano() int64 { return int64(c.now()) }

// Tick implements otter.Clock: nil, no ticks.
func (cacheClock) Tick(time.Duration) <-chan time.Time { return nil }
