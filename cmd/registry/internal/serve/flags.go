package serve

import (
	"path/filepath"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
)

// Flags are the flags of the command that this package reads itself; the command checks them.
type Flags struct {
	Demo bool `help:"Run a demonstration: about 2 000 invented entries, published through the real path into an empty stream of its own."`

	HTTPAddr       cli.Address   `name:"http-addr" default:":8080" help:"Public API and site." group:"Listeners"`
	AdminAddr      cli.Address   `default:"127.0.0.1:8081" help:"Operators' listener: health, metrics, profiles, /projection. Not for the public." group:"Listeners"`
	AdminHost      string        `placeholder:"NAME" help:"Host name that requests to the operators' listener may use, besides IP addresses and localhost." group:"Listeners"`
	MaxConnections int           `default:"0" help:"Most public connections at once. 0: as many as the limit of open files allows." group:"Listeners"`
	IdleTimeout    time.Duration `default:"75s" help:"Close a public connection that has sent no request for this long." group:"Listeners"`

	DataDir       string        `placeholder:"DIR" help:"Directory for the saved state and the embedded broker's store. Only one process at a time may use it (default: data, with --demo data-demo)." group:"State"`
	MaxStaleness  time.Duration `default:"0s" help:"Answer 503 rather than serve data older than this. 0: never." group:"State"`
	MinEntries    int           `default:"1" help:"Answer lists and checks with 503 while there are fewer entries, since an empty registry clears nobody. 0: off." group:"State"`
	SkipSnapshots bool          `help:"Start from the stream alone where there are snapshots of it and none can be read, or where it is missing or empty. Who is not in it is answered as unknown." group:"State"`
	SnapshotEvery time.Duration `default:"1h" help:"Put a snapshot into the object store REGISTRY_SNAPSHOTS this often, while anything changes. 0: none." group:"State"`
	SnapshotKeep  int           `default:"5" help:"Keep this many snapshots of the stream there." group:"State"`

	NATSURL            []string       `name:"nats-url" placeholder:"URL" help:"Use this broker, and start no embedded one, also where only REGISTRY_NATS_URL is set, as in an operator's shell: one or more addresses separated by commas." group:"Broker and stream"`
	EmbeddedNATSAddr   string         `name:"embedded-nats-addr" default:"127.0.0.1:4222" help:"Address where the moderation backend reaches the embedded broker. -: none." group:"Broker and stream"`
	EmbeddedNATSConfig string         `name:"embedded-nats-config" placeholder:"FILE" help:"nats.conf with the embedded broker's users, TLS and limits. Required if other machines can reach it." group:"Broker and stream"`
	Stream             cli.StreamName `default:"REGISTRY" help:"Name of the event stream." group:"Broker and stream"`
	cli.NewStreamFlags
	cli.NATSFlags
}

// IsEmbedded reports whether the broker runs in this process.
func (f Flags) IsEmbedded() bool { return len(f.NATSURL) == 0 }

// Broker returns the flags of a broker outside this process.
func (f Flags) Broker() cli.BrokerFlags {
	return cli.BrokerFlags{NATSURL: f.NATSURL, NATSFlags: f.NATSFlags}
}

// StorePath returns the path of the read model's store in a data directory.
func StorePath(dataDir string) string { return filepath.Join(dataDir, "registry.db") }

func (f Flags) storePath() string { return StorePath(f.DataDir) }
func (f Flags) rankedDir() string { return filepath.Join(f.DataDir, "ranked") }
func (f Flags) brokerDir() string { return filepath.Join(f.DataDir, "broker") }
