package httpapi

import (
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what the public API is made of. Health.Reader and Health.State are required.
type Config struct {
	Health *Health
	// Logger gets failures of the server's own. Nil: they are dropped.
	Logger *slog.Logger
	// Metrics is where the request metrics are registered, once. Nil: nowhere.
	Metrics prometheus.Registerer
	// BaseURL is the own public address, for the servers entry of /openapi.yaml. Empty: "/".
	BaseURL string
	// AppealsURL is where accused persons appeal, for the site. Empty: it names no address.
	AppealsURL string
	// Contact is where holes are reported, for security.txt: a mailto:, https: or tel: address. Empty: the
	// mailbox security@ of the BaseURL's host.
	Contact string
	// Site is whether people get pages at / and beside it.
	Site bool
	// ProofsURL is where /proofs/{id} leads. Empty: that path does not exist.
	ProofsURL string
	// AsyncAPI is the bytes of /asyncapi.yaml. Nil: that path does not exist.
	AsyncAPI []byte
	// RateLimit is requests a second and client address; bursts of one second's worth pass.
	// Zero: no limit.
	RateLimit float64
	// TrustedProxies are believed about the client's address. Nil: nobody is.
	TrustedProxies []netip.Prefix
	// Searches bounds the work that is not cheap.
	Searches SearchLimits
	// PageBytes bounds the memory of answers that are asked for again and again. Zero: 64 MiB.
	PageBytes int
	// Status is what /api/status asks. Zero: nobody, and no component is ok.
	Status StatusConfig
	// Avatars is where pictures of users come from. Zero: all are drawn.
	Avatars AvatarConfig
}

func (cfg *Config) check() error {
	if cfg.Health == nil || cfg.Health.Reader == nil || cfg.Health.State == nil {
		return fmt.Errorf("httpapi: Config.Health with Reader and State is required")
	}
	for name, address := range map[string]string{"BaseURL": cfg.BaseURL, "ProofsURL": cfg.ProofsURL, "AppealsURL": cfg.AppealsURL} {
		if err := checkAddress(address); err != nil {
			return fmt.Errorf("httpapi: Config.%s: %w", name, err)
		}
	}
	if err := CheckContact(cfg.Contact); err != nil {
		return fmt.Errorf("httpapi: Config.Contact: %w", err)
	}
	if cfg.RateLimit < 0 {
		return fmt.Errorf("httpapi: Config.RateLimit: %v is negative", cfg.RateLimit)
	}
	return nil
}

// checkAddress accepts "" and plain http(s) addresses.
func checkAddress(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("not an address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%q is not an http(s) address without user, query and fragment", address)
	}
	return nil
}
