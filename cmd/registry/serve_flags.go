package main

import (
	"fmt"
	"time"
)

// serveCmd runs everything in one process. Its fields are its flags.
type serveCmd struct {
	Demo bool `help:"Run a demonstration: some 2 000 invented entries, published through the real path into an empty stream of its own."`

	HTTPAddr       address       `name:"http-addr" default:":8080" help:"Public API and site." group:"Listeners"`
	AdminAddr      address       `default:"127.0.0.1:8081" help:"Operators' listener: health, metrics, profiles, /projection. Not for the public." group:"Listeners"`
	AdminTokenFile string        `placeholder:"FILE" help:"Bearer token for the operators' listener. Required where it is reachable from other machines." group:"Listeners"`
	AdminHost      string        `placeholder:"NAME" help:"Host name under which the operators' listener may be asked, besides IP addresses and localhost." group:"Listeners"`
	BaseURL        publicURL     `name:"base-url" placeholder:"URL" help:"Public address of this service, for the OpenAPI document." group:"Listeners"`
	ProofsURL      publicURL     `name:"proofs-url" placeholder:"URL" help:"Where proofs pages are: /proofs/{id} redirects to URL/{id}. Without it they are 404." group:"Listeners"`
	AppealsURL     publicURL     `name:"appeals-url" placeholder:"URL" help:"Where an accused person appeals: the site links to it with every listed person." group:"Listeners"`
	Contact        contact       `name:"security-contact" placeholder:"ADDRESS" help:"Where holes are reported, for security.txt: a mailto:, https: or tel: address (default: the mailbox security@ of --base-url's host)." group:"Listeners"`
	Site           bool          `default:"true" negatable:"" help:"Pages for people at /, beside the API. --site=false turns them off." group:"Listeners"`
	RateLimit      float64       `default:"0" help:"Requests a second and client address (IPv6: a /64). 0: no limit." group:"Listeners"`
	TrustedProxies []network     `placeholder:"CIDR" help:"Proxies whose X-Forwarded-For is believed, separated by commas." group:"Listeners"`
	MaxConnections int           `default:"0" help:"Public connections at once. 0: from the limit of open files." group:"Listeners"`
	MaxStaleness   time.Duration `default:"0s" help:"Out of touch with the stream for longer, answers are 503 instead of old data. 0: never." group:"State"`
	MinEntries     int           `default:"0" help:"With fewer entries in all, answers are 503: a wrong or empty stream must not look like an empty world. 0: off." group:"State"`

	SnapshotEvery time.Duration `default:"1h" help:"Time between two snapshots into the object store REGISTRY_SNAPSHOTS, made unasked while anything changes. 0: none." group:"State"`
	SnapshotKeep  int           `default:"5" help:"Snapshots of the stream that are kept there." group:"State"`

	TextIndex bool `default:"true" negatable:"" help:"Keep a text index, in nameless files in the data directory, so that searches nobody asked before are fast, too. --text-index=false saves its memory: some 300 bytes an entry." group:"State"`

	DataDir string `placeholder:"DIR" help:"Saved state and the embedded broker's store. One process at a time (default: data, with --demo data-demo)." group:"State"`

	NATSURL            []string   `name:"nats-url" placeholder:"URL" help:"Broker to use instead of the embedded one, one or more addresses separated by commas." group:"Broker and stream"`
	EmbeddedNATSAddr   string     `name:"embedded-nats-addr" default:"127.0.0.1:4222" help:"Where the moderation backend reaches the embedded broker; - for nowhere." group:"Broker and stream"`
	EmbeddedNATSConfig string     `name:"embedded-nats-config" placeholder:"FILE" help:"nats.conf with the embedded broker's users, TLS and limits. Required where the broker is reachable from other machines." group:"Broker and stream"`
	Stream             streamName `default:"REGISTRY" help:"Name of the event stream." group:"Broker and stream"`
	StreamReplicas     int        `default:"1" help:"Replicas of a stream that is created, 1 to 5. The embedded broker has one." group:"Broker and stream"`
	StreamHistory      int        `default:"5" help:"Messages kept of a subject in a stream that is created. 0: all." group:"Broker and stream"`
	GuardURL           publicURL  `name:"guard-url" placeholder:"URL" help:"External guard service whose state /api/status shows: any answer below 500 within 6 s is a good one." group:"Outside services"`
	ChatURL            publicURL  `name:"chat-url" placeholder:"URL" help:"Chat platform, for /api/status alike." group:"Outside services"`
	CoinURL            publicURL  `name:"coin-url" placeholder:"URL" help:"Cryptocurrency network, for /api/status alike." group:"Outside services"`
	ChatAPIURL         publicURL  `name:"chat-api-url" placeholder:"URL" help:"API of a Discord-compatible chat platform, asked for users' pictures at URL/users/{id}. Without it every picture is drawn." group:"Outside services"`
	ChatCDNURL         publicURL  `name:"chat-cdn-url" placeholder:"URL" help:"Where that platform keeps the pictures: URL/avatars/{id}/{name}.png. Goes with --chat-api-url." group:"Outside services"`
	ChatTokenFile      string     `placeholder:"FILE" help:"Bot token for --chat-api-url. The file may be readable by its owner and group alone." group:"Outside services"`
	natsFlags
	logFlags
}

// Help is what registry serve --help says beyond the flags.
func (serveCmd) Help() string {
	return "Listens at once and answers lists, checks and donations with 503 until the read model has caught up with the stream. " +
		"SIGTERM and SIGINT stop it in order: no new requests, the running ones end, everything is saved. A second signal ends it at once. " +
		"GOGC and GOMEMLIMIT are chosen for serving unless the environment sets them. " +
		"Every flag has an environment variable: --nats-url is REGISTRY_NATS_URL."
}

// check refuses what cannot work before anything is touched.
func (c *serveCmd) check() error {
	if err := c.checkBroker(); err != nil {
		return err
	}
	for _, bound := range []struct {
		flag string
		bad  bool
		need string
	}{
		{"rate-limit", c.RateLimit != 0 && !(c.RateLimit >= 1e-4 && c.RateLimit <= 1e6), "0, or 0.0001 to 1000000"},
		{"max-connections", c.MaxConnections < 0, "0 or more"},
		{"max-staleness", c.MaxStaleness < 0, "0 or more"},
		{"min-entries", c.MinEntries < 0, "0 or more"},
		{"snapshot-every", c.SnapshotEvery != 0 && c.SnapshotEvery < time.Second, "0, or 1s or more"},
		{"snapshot-keep", c.SnapshotKeep < 1, "1 or more"},
		{"stream-replicas", c.StreamReplicas < 1 || c.StreamReplicas > 5, "1 to 5"},
		{"stream-history", c.StreamHistory < 0 || c.StreamHistory > 1_000_000, "0 to 1000000"},
	} {
		if bound.bad {
			return usagef("--%s: must be %s", bound.flag, bound.need)
		}
	}
	if !c.AdminAddr.loopback() && c.AdminTokenFile == "" {
		return usagef("--admin-addr: %s is reachable from other machines and needs --admin-token-file", c.AdminAddr)
	}
	if err := c.checkAvatars(); err != nil {
		return err
	}
	return c.natsFlags.check()
}

func (c *serveCmd) checkBroker() error {
	if err := checkURLs(c.NATSURL); err != nil {
		return err
	}
	switch {
	case c.Demo && c.external():
		return usagef("--demo: needs the embedded broker, so it does not go with --nats-url")
	case c.external() && c.EmbeddedNATSConfig != "":
		return usagef("--embedded-nats-config: there is no embedded broker with --nats-url")
	case !c.external() && c.StreamReplicas > 1:
		return usagef("--stream-replicas: the embedded broker keeps one replica; more need --nats-url")
	case !c.external() && c.EmbeddedNATSAddr != "-":
		var a address
		if err := a.UnmarshalText([]byte(c.EmbeddedNATSAddr)); err != nil {
			return usagef("--embedded-nats-addr: %w", err)
		}
		if !a.loopback() && c.EmbeddedNATSConfig == "" {
			return fmt.Errorf("--embedded-nats-addr: %s is reachable from other machines and needs --embedded-nats-config with users", a)
		}
	}
	return nil
}

// external is true when the broker is another process.
func (c *serveCmd) external() bool { return len(c.NATSURL) > 0 }
