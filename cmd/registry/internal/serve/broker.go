package serve

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events/broker"
	"example.org/registry/httpapi"
	"example.org/registry/projector"
)

const (
	healthEvery = time.Second     // between two checks of the embedded broker
	reachEvery  = 2 * time.Second // between two attempts to find out why there is no connection
)

// connect connects to the broker: the embedded one, which it starts, or the one at --nats-url,
// which may be away. It serves validation requests of backends. stop closes the connection and then
// the broker.
func (s *server) connect() (js jetstream.JetStream, stop func(), err error) {
	var nc *nats.Conn
	if s.cfg.embedded() {
		nc, stop, err = s.embed()
	} else {
		nc, stop, err = s.dial()
	}
	if err != nil {
		return nil, nil, err
	}
	if js, err = jetstream.New(nc); err != nil {
		stop()
		return nil, nil, fmt.Errorf("broker: %w", err)
	}
	stopValidation, err := projector.ServeValidation(nc, s.live.known, s.log)
	if err != nil {
		stop()
		return nil, nil, err
	}
	closeConnection := stop // stop, the result, is about to be replaced
	return js, func() { stopValidation(); closeConnection() }, nil
}

// dial connects to an external broker and, while it cannot be reached, keeps diagnosing why.
func (s *server) dial() (nc *nats.Conn, stop func(), err error) {
	s.log.Info("no embedded broker: --nats-url or REGISTRY_NATS_URL names another", "broker", s.cfg.Broker.Addresses())
	opts := append(s.cfg.Broker.Options("registry serve"), projector.ConnectOptions()...)
	nc, err = nats.Connect(strings.Join(s.cfg.Broker.NATSURL, ","), opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("broker at %s: %w", s.cfg.Broker.Addresses(), err)
	}
	watch := task.Every(reachEvery, func() { s.diagnose(nc) })
	return nc, func() { _ = watch.Stop(); nc.Close() }, nil
}

// diagnose finds why the external broker cannot be used, and logs it if the operator has to act.
func (s *server) diagnose(nc *nats.Conn) {
	if nc.IsConnected() {
		s.live.unreachable.Store(nil)
		return
	}
	now := s.cfg.Broker.Diagnose("registry serve")
	if now.Back {
		return // the connection returns by itself
	}
	if was := s.live.unreachable.Swap(&now); was == nil || was.Remedy != now.Remedy {
		s.log.Warn("no connection to the broker; trying again", "reason", now.Reasons, "remedy", now.Remedy)
	}
}

// embed starts the embedded broker and connects to it through memory.
func (s *server) embed() (nc *nats.Conn, stop func(), err error) {
	b, err := broker.Start(broker.Config{
		StoreDir:   s.cfg.brokerDir(),
		Addr:       s.cfg.EmbeddedAddr,
		ConfigFile: s.cfg.EmbeddedConfig,
		Logger:     s.log,

		MaxConnections: httpapi.Descriptors().Broker,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w (--embedded-nats-addr, --embedded-nats-config and --data-dir decide about it)", err)
	}
	s.live.brokerURL.Store(new(b.ClientURL()))
	nc, err = b.Connect(projector.ConnectOptions()...)
	if err != nil {
		b.Shutdown()
		return nil, nil, err
	}
	// In its own goroutine, since the check may wait for the disk, and no query may wait for that
	// (promise 5, readmodel/doc.go).
	watch := task.Every(healthEvery, func() { s.setHealth(b.Health()) })
	return nc, func() { _ = watch.Stop(); nc.Close(); b.Shutdown() }, nil
}

// setHealth logs a change.
func (s *server) setHealth(err error) {
	if err == nil {
		s.live.brokerProblem.Store(nil)
		return
	}
	const remedy = "make room on its disk, or mend it, and start registry again"
	sentence := "The embedded broker takes in no events: " + err.Error() + "; " + remedy + "."
	if old := s.live.brokerProblem.Swap(&sentence); old == nil || *old != sentence {
		s.log.Error("the embedded broker takes in no events; the events it has are served", "error", err, "remedy", remedy)
	}
}
