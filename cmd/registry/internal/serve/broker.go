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
	healthEvery   = time.Second     // between two checks of the embedded broker
	diagnoseEvery = 2 * time.Second // between two attempts to find out why there is no connection
)

// link connects to the broker, and starts it if it is embedded.
type link struct {
	cfg  Config
	live *live
}

// connectBroker starts the embedded broker and connects to it, or connects to the broker at --nats-url,
// which may be away. It also answers the validation requests of backends. close undoes all this, the embedded
// broker last.
func (l link) connectBroker() (js jetstream.JetStream, close func(), err error) {
	open := l.dialExternal
	if l.cfg.IsEmbedded() {
		open = l.startEmbedded
	}

	nc, closeBroker, err := open()
	if err != nil {
		return nil, nil, err
	}

	js, err = jetstream.New(nc)
	if err != nil {
		closeBroker()
		return nil, nil, fmt.Errorf("broker: %w", err)
	}

	stopValidation, err := projector.ServeValidation(nc, l.live.knownRevision, l.cfg.Logger)
	if err != nil {
		closeBroker()
		return nil, nil, err
	}
	return js, func() { stopValidation(); closeBroker() }, nil
}

// dialExternal connects to an external broker and, while it cannot be reached, keeps diagnosing why.
func (l link) dialExternal() (nc *nats.Conn, close func(), err error) {
	l.cfg.Logger.Info("no embedded broker: --nats-url or REGISTRY_NATS_URL names another", "broker", l.cfg.Broker().Addresses())
	opts := append(l.cfg.Broker().Options("registry serve"), projector.ConnectOptions()...)
	nc, err = nats.Connect(strings.Join(l.cfg.Broker().NATSURL, ","), opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("broker at %s: %w", l.cfg.Broker().Addresses(), err)
	}

	watch := task.Every(diagnoseEvery, func() { l.diagnoseOutage(nc) })
	return nc, func() { _ = watch.Stop(); nc.Close() }, nil
}

// diagnoseOutage finds out why the external broker cannot be used, and logs the reason once in each outage.
func (l link) diagnoseOutage(nc *nats.Conn) {
	if nc.IsConnected() {
		l.live.unreachable.Store(nil)
		return
	}

	err := l.cfg.Broker().Diagnose("registry serve")
	if err == nil {
		return // the broker is back, and nc soon reconnects by itself
	}
	old := l.live.unreachable.Swap(new(err.Error()))
	if old == nil {
		l.cfg.Logger.Warn("no connection to the broker; trying again", "error", err)
	}
}

// startEmbedded starts the embedded broker and connects to it through memory.
func (l link) startEmbedded() (nc *nats.Conn, close func(), err error) {
	b, err := broker.Start(broker.Config{
		StoreDir:       l.cfg.brokerDir(),
		Addr:           l.cfg.EmbeddedNATSAddr,
		ConfigFile:     l.cfg.EmbeddedNATSConfig,
		Logger:         l.cfg.Logger,
		MaxConnections: httpapi.Descriptors().Broker,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w (--embedded-nats-addr, --embedded-nats-config and --data-dir decide about it)", err)
	}

	l.live.brokerURL.Store(new(b.ClientURL()))
	nc, err = b.Connect(projector.ConnectOptions()...)
	if err != nil {
		b.Shutdown()
		return nil, nil, err
	}

	// The check may wait for the disk, and no query may wait for the check, so it runs in a goroutine of its own.
	watch := task.Every(healthEvery, func() { l.recordHealth(b.Health()) })
	return nc, func() { _ = watch.Stop(); nc.Close(); b.Shutdown() }, nil
}

// recordHealth keeps the embedded broker's problem, and logs a new one.
func (l link) recordHealth(err error) {
	if err == nil {
		l.live.brokerProblem.Store(nil)
		return
	}

	const remedy = "make room on its disk, or mend it, and start registry again"
	sentence := "The embedded broker takes in no events: " + err.Error() + "; " + remedy + "."
	if old := l.live.brokerProblem.Swap(&sentence); old == nil || *old != sentence {
		l.cfg.Logger.Error("the embedded broker is read-only", "error", err, "remedy", remedy)
	}
}
