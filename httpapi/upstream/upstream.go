package upstream

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// callTimeout bounds a probe, and all calls for one picture.
const callTimeout = 6 * time.Second

// Config configures Services. The zero value calls no server: no component is ok, and all pictures are generated.
type Config struct {
	Status  StatusConfig
	Avatars AvatarConfig

	// UserAgent is the User-Agent of calls. The chat platform wants it to be DiscordBot (<address>, <version>). If it is empty,
	// calls send "registry".
	UserAgent string

	// Metrics is where New registers the metrics of calls. If it is nil, they are not registered.
	Metrics prometheus.Registerer

	// Logger gets the failures of upstreams. If it is nil, nothing is logged.
	Logger *slog.Logger

	transport http.RoundTripper // replaces the network; for tests
}

// Services provides the status and the avatars. Any goroutine may call its methods. Its owner calls Close.
type Services struct {
	status  *status
	avatars *avatars
	client  *client
	cancel  context.CancelFunc // ends running calls
}

// New returns the services. Their addresses have been checked (ParseURL, AvatarConfig.Check).
func New(cfg Config) *Services {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "registry")
	ctx, cancel := context.WithCancel(context.Background())
	client := newClient(cfg)
	return &Services{
		status:  newStatus(ctx, cfg, client),
		avatars: newAvatars(ctx, cfg, client),
		client:  client,
		cancel:  cancel,
	}
}

// Close ends the running calls. Later requests are served without calls.
func (s *Services) Close() {
	s.cancel()
	s.client.http.CloseIdleConnections()
}

// Status returns the newest round of probes, which is at most 15 s old. Status takes up to 6 s. The result is shared and must
// not be modified.
func (s *Services) Status() *Status { return s.status.latestRound() }

// Avatar is a picture of a user.
type Avatar struct {
	Type  string // image/png, image/jpeg, image/webp or image/gif
	Bytes []byte // at most 2 MiB; shared, must not be modified

	// Failed means that the picture is generated because the platform failed or was busy. The user's own picture may be available
	// soon.
	Failed bool
}

// Avatar returns the user's picture on the platform, or else one generated from the id. user is the id,
// [A-Za-z0-9_-]{1,64}, and size is 16, 32, 64, 128, 256 or 512 pixels. Avatar takes up to 6 s.
func (s *Services) Avatar(user string, size int) (Avatar, error) {
	found := s.avatars.findPicture(user, size)
	if found.result == avatarFound {
		return Avatar{Type: found.media, Bytes: found.bytes}, nil
	}
	drawn, err := encodeIdenticon(user, size)
	return Avatar{Type: "image/png", Bytes: drawn, Failed: found.result == avatarFailed}, err
}
