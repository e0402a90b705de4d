package httpapi

import (
	"errors"
	"time"
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
