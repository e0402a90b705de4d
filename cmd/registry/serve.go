package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/serve"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/upstream"
)

// serveCmd runs everything in one process (internal/serve).
type serveCmd struct {
	Demo bool `help:"Run a demonstration: about 2 000 invented entries, published through the real path into an empty stream of its own."`

	HTTPAddr       cli.Address   `name:"http-addr" default:":8080" help:"Public API and site." group:"Listeners"`
	AdminAddr      cli.Address   `default:"127.0.0.1:8081" help:"Operators' listener: health, metrics, profiles, /projection. Not for the public." group:"Listeners"`
	AdminTokenFile string        `placeholder:"FILE" help:"File with the bearer token for the operators' listener. Required if other machines can reach it." group:"Listeners"`
	AdminHost      string        `placeholder:"NAME" help:"Host name that requests to the operators' listener may use, besides IP addresses and localhost." group:"Listeners"`
	BaseURL        cli.URL       `name:"base-url" placeholder:"URL" empty:"" help:"Public address of this service, for the OpenAPI document and the examples on the site's API page. Without it they use the address of the request." group:"Listeners"`
	ProofsURL      cli.URL       `name:"proofs-url" placeholder:"URL" empty:"" help:"Where the pages with proofs are: /proofs/{id} redirects to URL/{id}. Without it those addresses are 404." group:"Listeners"`
	AppealsURL     cli.Appeals   `name:"appeals-url" placeholder:"URL" empty:"" help:"Where an accused person appeals. The site links to it with every accused entry; {reportId} in it is replaced by the number of the report." group:"Listeners"`
	ReportURL      cli.Reports   `name:"report-url" placeholder:"URL" empty:"" help:"Where somebody reports a fraud. The site links to it where nothing was found, and on its first page." group:"Listeners"`
	AdviceFile     string        `placeholder:"FILE" empty:"" help:"Markdown file that says what to do after a payment, shown below every answer. Without it the site shows its own." group:"Listeners"`
	AboutFile      string        `placeholder:"FILE" empty:"" help:"Markdown file for the page /o-rejestrze: who runs the registry, how to reach them and what they do with data. Without it the page says what the program does." group:"Listeners"`
	Contact        cli.Contact   `name:"security-contact" placeholder:"ADDRESS" help:"Where to report vulnerabilities, for security.txt: a mailto:, https: or tel: address (default: security@ the host of --base-url)." group:"Listeners"`
	Site           bool          `default:"true" negatable:"" help:"Serve pages for people at /, beside the API." group:"Listeners"`
	RateLimit      float64       `default:"0" help:"Requests per second and client address (IPv6: per /64). 0: no limit." group:"Listeners"`
	MaxFollowers   int           `default:"1000" help:"Most readers that wait for changes (/api/changes) at once. 0: none." group:"Listeners"`
	TrustedProxies []cli.Network `placeholder:"CIDR" empty:"" help:"Proxies whose X-Forwarded-For to trust, separated by commas." group:"Listeners"`
	MaxConnections int           `default:"0" help:"Most public connections at once. 0: as many as the limit of open files allows." group:"Listeners"`
	IdleTimeout    time.Duration `default:"75s" help:"Close a public connection that has sent no request for this long." group:"Listeners"`
	AnswerMemory   cli.Bytes     `default:"0" placeholder:"SIZE" help:"Most memory for the answers that are being made or sent, such as 256MiB; what does not fit is refused with 503. 0: an eighth of the process's memory limit or the machine's memory." group:"Listeners"`
	MaxStaleness   time.Duration `default:"0s" help:"Answer 503 rather than serve data older than this. 0: never." group:"State"`
	StaleIfError   time.Duration `default:"1h" help:"Let shared caches show an old list for this long while no server answers; at most --max-staleness where that is set. Somebody who has been delisted may be shown for as long. 0: never." group:"State"`
	MinEntries     int           `default:"1" help:"Answer lists and checks with 503 while there are fewer entries, since an empty registry clears nobody. 0: off." group:"State"`
	SkipSnapshots  bool          `help:"Start from the stream alone where there are snapshots of it and none can be read, or where it is missing or empty. Who is not in it is answered as unknown." group:"State"`

	SnapshotEvery time.Duration `default:"1h" help:"Put a snapshot into the object store REGISTRY_SNAPSHOTS this often, while anything changes. 0: none." group:"State"`
	SnapshotKeep  int           `default:"5" help:"Keep this many snapshots of the stream there." group:"State"`

	DataDir string `placeholder:"DIR" help:"Directory for the saved state and the embedded broker's store. Only one process at a time may use it (default: data, with --demo data-demo)." group:"State"`

	NATSURL            []string       `name:"nats-url" placeholder:"URL" empty:"" help:"Use this broker, and start no embedded one, also where only REGISTRY_NATS_URL is set, as in an operator's shell: one or more addresses separated by commas." group:"Broker and stream"`
	EmbeddedNATSAddr   string         `name:"embedded-nats-addr" default:"127.0.0.1:4222" help:"Address where the moderation backend reaches the embedded broker. -: none." group:"Broker and stream"`
	EmbeddedNATSConfig string         `name:"embedded-nats-config" placeholder:"FILE" help:"nats.conf with the embedded broker's users, TLS and limits. Required if other machines can reach it." group:"Broker and stream"`
	Stream             cli.StreamName `default:"REGISTRY" help:"Name of the event stream." group:"Broker and stream"`
	newStream
	GuardURL      cli.URL `name:"guard-url" placeholder:"URL" empty:"" help:"Guard service whose state /api/status shows: up if it answers with a status below 500 within 6 s." group:"Outside services"`
	ChatURL       cli.URL `name:"chat-url" placeholder:"URL" empty:"" help:"Chat platform, for /api/status." group:"Outside services"`
	CoinURL       cli.URL `name:"coin-url" placeholder:"URL" empty:"" help:"Cryptocurrency network, for /api/status." group:"Outside services"`
	ChatAPIURL    cli.URL `name:"chat-api-url" placeholder:"URL" empty:"" help:"API of a Discord-compatible chat platform, which knows users' pictures: URL/users/{id}. Without it, all pictures are drawn." group:"Outside services"`
	ChatCDNURL    cli.URL `name:"chat-cdn-url" placeholder:"URL" empty:"" help:"Where that platform keeps the pictures: URL/avatars/{id}/{name}.png. Required with --chat-api-url." group:"Outside services"`
	ChatTokenFile string  `placeholder:"FILE" empty:"" help:"File with the bot token for --chat-api-url. Only its owner and group may be able to read it." group:"Outside services"`
	cli.NATSFlags
	cli.LogFlags
}

// Help returns the help beyond the flags.
func (serveCmd) Help() string {
	return "Listens at once, and answers lists, checks and donations with 503 until the read model has caught up with the stream. " +
		"On SIGTERM or SIGINT it accepts no more requests, finishes those in progress, saves everything and ends. A second signal ends it at once. SIGHUP is ignored. " +
		"It sets GOMEMLIMIT itself unless the environment does. " +
		"Every flag has an environment variable: --nats-url is REGISTRY_NATS_URL."
}

// Run serves until the process's context ends and everything has been saved.
func (c *serveCmd) Run(p *process) error {
	began := time.Now()
	if err := c.check(); err != nil {
		return err
	}
	adminToken, err := cli.AdminToken(c.AdminTokenFile)
	if err != nil {
		return err
	}
	chatToken, err := c.chatToken()
	if err != nil {
		return err
	}
	advice, err := markdownFile("--advice-file", c.AdviceFile)
	if err != nil {
		return err
	}
	about, err := markdownFile("--about-file", c.AboutFile)
	if err != nil {
		return err
	}
	// A log that nobody reads any more must not end the server.
	signal.Ignore(syscall.SIGPIPE)
	log := c.NewLog(p.stderr)
	defer log.Close()
	defer ignoreHangup(log.Logger)()
	var terminal io.Writer
	if c.ForPeople(p.stderr) {
		terminal = log
	}
	return serve.Run(p.ctx, serve.Config{
		DataDir:        c.dataDir(),
		Demo:           c.Demo,
		HTTPAddr:       string(c.HTTPAddr),
		AdminAddr:      string(c.AdminAddr),
		MaxConnections: c.MaxConnections,
		IdleTimeout:    c.IdleTimeout,
		Public: httpapi.Config{
			BaseURL:        string(c.BaseURL),
			ProofsURL:      string(c.ProofsURL),
			AppealsURL:     string(c.AppealsURL),
			ReportURL:      string(c.ReportURL),
			Advice:         advice,
			About:          about,
			Contact:        string(c.Contact),
			Site:           c.Site,
			RateLimit:      c.RateLimit,
			MaxFollowers:   c.MaxFollowers,
			AnswerMemory:   int64(c.AnswerMemory),
			TrustedProxies: cli.Prefixes(c.TrustedProxies),
			StaleIfError:   c.StaleIfError,
			Status:         upstream.StatusConfig{Guard: string(c.GuardURL), Chat: string(c.ChatURL), Coin: string(c.CoinURL)},
			UserAgent:      c.userAgent(),
			Avatars:        c.avatars(chatToken),
		},
		AdminHost:      c.AdminHost,
		AdminToken:     adminToken,
		MaxStaleness:   c.MaxStaleness,
		MinEntries:     c.MinEntries,
		SkipSnapshots:  c.SkipSnapshots,
		Broker:         c.brokerFlags(),
		EmbeddedAddr:   c.EmbeddedNATSAddr,
		EmbeddedConfig: c.EmbeddedNATSConfig,
		Stream:         string(c.Stream),
		StreamReplicas: c.StreamReplicas,
		StreamHistory:  c.StreamHistory,
		SnapshotEvery:  c.SnapshotEvery,
		SnapshotKeep:   c.SnapshotKeep,
		Began:          began,
		Logger:         log.Logger,
		LostLines:      log.LostLines,
		Terminal:       terminal,
		NotifySocket:   p.getenv("NOTIFY_SOCKET"),
	})
}

// ignoreHangup logs and ignores SIGHUP until stop is called: to other servers it means reload, and
// its default would end the process without saving.
func ignoreHangup(log *slog.Logger) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	logging := make(chan struct{})
	go func() {
		defer close(logging)
		for range hangups {
			log.Warn("SIGHUP is ignored: flags and files are read at start alone; restart to change them")
		}
	}()
	return func() { signal.Stop(hangups); close(hangups); <-logging }
}

// check rejects invalid flags before anything is touched.
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
		{"max-followers", c.MaxFollowers < 0, "0 or more"},
		{"max-connections", c.MaxConnections < 0, "0 or more"},
		{"idle-timeout", c.IdleTimeout <= 0, "more than 0"},
		{"answer-memory", c.AnswerMemory != 0 && c.AnswerMemory < serve.MinAnswerMemory, "0, or 16MiB or more"},
		{"max-staleness", c.MaxStaleness < 0, "0 or more"},
		{"stale-if-error", c.StaleIfError != 0 && c.StaleIfError < time.Second, "0, or 1s or more"},
		{"min-entries", c.MinEntries < 0, "0 or more"},
		{"snapshot-every", c.SnapshotEvery != 0 && c.SnapshotEvery < time.Second, "0, or 1s or more"},
		{"snapshot-keep", c.SnapshotKeep < 1, "1 or more"},
	} {
		if bound.bad {
			return cli.Usagef("--%s: must be %s", bound.flag, bound.need)
		}
	}
	if err := c.newStream.check(); err != nil {
		return err
	}
	if !c.AdminAddr.Loopback() && c.AdminTokenFile == "" {
		return cli.Usagef("--admin-addr: %s is reachable from other machines and needs --admin-token-file", c.AdminAddr)
	}
	if err := c.checkAvatars(); err != nil {
		return err
	}
	return c.brokerFlags().Check()
}

func (c *serveCmd) checkBroker() error {
	if err := c.brokerFlags().CheckURLs(); err != nil {
		return err
	}
	switch {
	case c.Demo && c.external():
		return cli.Usagef("--demo: needs the embedded broker, so it does not go with --nats-url (REGISTRY_NATS_URL)")
	case c.external() && c.EmbeddedNATSConfig != "":
		return cli.Usagef("--embedded-nats-config: there is no embedded broker with --nats-url (REGISTRY_NATS_URL)")
	case !c.external() && c.StreamReplicas > 1:
		return cli.Usagef("--stream-replicas: the embedded broker keeps one replica; more need --nats-url")
	case !c.external() && c.EmbeddedNATSAddr != "-":
		var a cli.Address
		if err := a.UnmarshalText([]byte(c.EmbeddedNATSAddr)); err != nil {
			return cli.Usagef("--embedded-nats-addr: %w", err)
		}
		if !a.Loopback() && c.EmbeddedNATSConfig == "" {
			return fmt.Errorf("--embedded-nats-addr: %s is reachable from other machines and needs --embedded-nats-config with users", a)
		}
	}
	return nil
}

func (c *serveCmd) brokerFlags() cli.BrokerFlags {
	return cli.BrokerFlags{NATSURL: c.NATSURL, NATSFlags: c.NATSFlags}
}

// external reports whether the broker is another process.
func (c *serveCmd) external() bool { return len(c.NATSURL) > 0 }

func (c *serveCmd) dataDir() string {
	switch {
	case c.DataDir != "":
		return c.DataDir
	case c.Demo:
		return "data-demo"
	}
	return "data"
}

// maxToken is the maximum length of a token in bytes.
const maxToken = 4096

// chatToken reads the chat platform's token, or returns "" if none is configured. The token is as
// good as a password, so a file that others on the machine may read, or its group may write, is
// refused. The group may read it, because that is how Kubernetes passes secrets to a process that
// is not root.
func (c *serveCmd) chatToken() (string, error) {
	if c.ChatTokenFile == "" {
		return "", nil
	}
	info, err := os.Stat(c.ChatTokenFile)
	if err != nil {
		return "", cli.Unreadable("--chat-token-file", c.ChatTokenFile, err)
	}
	if mode := info.Mode().Perm(); mode&0o037 != 0 {
		return "", fmt.Errorf("--chat-token-file: mode %04o lets others use the token; chmod 600 %s", mode, c.ChatTokenFile)
	}
	text, err := cli.ReadFile(c.ChatTokenFile, maxToken+2) // with a line end
	if err != nil {
		return "", cli.Unreadable("--chat-token-file", c.ChatTokenFile, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(token) > maxToken || !cli.IsToken(token) {
		return "", errors.New("--chat-token-file: the file must hold one token of printable ASCII characters without spaces")
	}
	return token, nil
}

// markdownFile reads a text for the site, of at most limit bytes. It returns "" if name is empty.
func markdownFile(flag, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	text, err := cli.ReadFile(name, site.MaxText)
	if err != nil {
		return "", cli.Unreadable(flag, name, err)
	}
	if len(text) == 0 {
		return "", fmt.Errorf("%s: the file is empty; leave the flag out for the site's own text", flag)
	}
	if err := site.CheckText(string(text)); err != nil {
		return "", fmt.Errorf("%s: the file %w", flag, err)
	}
	return string(text), nil
}

// userAgent names the service as the chat platform asks of its callers.
func (c *serveCmd) userAgent() string {
	if c.BaseURL == "" {
		return ""
	}
	info, _ := debug.ReadBuildInfo() // nil only for a binary built without modules
	return fmt.Sprintf("DiscordBot (%s, %s)", c.BaseURL, programVersion(info))
}

// avatars returns where pictures of users come from.
func (c *serveCmd) avatars(token string) upstream.AvatarConfig {
	return upstream.AvatarConfig{API: string(c.ChatAPIURL), CDN: string(c.ChatCDNURL), Token: token}
}

// checkAvatars rejects addresses that do not fit together.
func (c *serveCmd) checkAvatars() error {
	token := ""
	if c.ChatTokenFile != "" {
		token = "there will be one"
	}
	if err := c.avatars(token).Check(); err != nil {
		return cli.Usagef("--chat-api-url, --chat-cdn-url, --chat-token-file: %w", err)
	}
	return nil
}
