package httpapi

import (
	"fmt"
	"io"
)

// outside is what answers from other people's servers, and what readers wait for together.
type outside struct {
	work       *detached
	rounds     *statusRounds
	avatars    *avatars
	identicons identicons

	statusCache   []string // Cache-Control of a status
	avatarCache   []string // of a picture
	fallbackCache []string // of one that stands in for what the platform did not give
}

// newOutside uses p's logger.
func (p *Public) newOutside(cfg Config) error {
	upstreams := newUpstreamMetrics(cfg.Metrics)
	p.outside = outside{
		work:          newDetached(p.logger),
		statusCache:   []string{"public, s-maxage=15"},
		avatarCache:   []string{"public, max-age=3600"},
		fallbackCache: []string{"public, max-age=60"},
	}
	var err error
	if p.rounds, err = newStatusRounds(cfg.Status, cfg.Health, upstreams, p.work, p.logger); err != nil {
		return fmt.Errorf("httpapi: Config.Status: %w", err)
	}
	if p.avatars, err = newAvatars(cfg.Avatars, upstreams, p.work, p.logger); err != nil {
		return fmt.Errorf("httpapi: Config.Avatars: %w", err)
	}
	return nil
}

// Close ends the probes and calls of the platform that are still running, and waits for them.
// Requests that come later are answered without asking anybody.
func (p *Public) Close() {
	p.work.close()
	if platform, ok := p.avatars.platform.(io.Closer); ok {
		_ = platform.Close() // lets go of idle connections
	}
}
