package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/signal"
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
	serve.Flags

	AdminTokenFile string        `placeholder:"FILE" help:"File with the bearer token for the operators' listener. Required if other machines can reach it." group:"Listeners"`
	BaseURL        cli.URL       `name:"base-url" placeholder:"URL" help:"Public address of this service, for the OpenAPI document and the examples on the site's API page. Without it they use the address of the request." group:"Listeners"`
	ProofsURL      cli.URL       `name:"proofs-url" placeholder:"URL" help:"Where the pages with proofs are: /proofs/{id} redirects to URL/{id}. Without it those addresses are 404." group:"Listeners"`
	AppealsURL     string        `name:"appeals-url" placeholder:"URL" help:"Where an accused person appeals. The site links to it with every accused entry; {reportId} in it is replaced by the number of the report." group:"Listeners"`
	ReportURL      string        `name:"report-url" placeholder:"URL" help:"Where somebody reports a fraud. The site links to it where nothing was found, and on its first page." group:"Listeners"`
	AdviceFile     string        `placeholder:"FILE" help:"Markdown file that says what to do after a payment, shown below every answer. Without it the site shows its own." group:"Listeners"`
	AboutFile      string        `placeholder:"FILE" help:"Markdown file for the page /o-rejestrze: who runs the registry, how to reach them and what they do with data. Without it the page says what the program does." group:"Listeners"`
	Site           bool          `default:"true" negatable:"" help:"Serve pages for people at /, beside the API." group:"Listeners"`
	RateLimit      float64       `default:"0" help:"Requests per second and client address (IPv6: per /64). 0: no limit." group:"Listeners"`
	MaxFollowers   int           `default:"1000" help:"Most readers that wait for changes (/api/changes) at once. 0: none." group:"Listeners"`
	TrustedProxies []network     `placeholder:"CIDR" help:"Proxies whose X-Forwarded-For to trust: addresses or networks, such as 127.0.0.1 or 10.0.0.0/8, separated by commas." group:"Listeners"`
	AnswerMemory   cli.Bytes     `default:"0" placeholder:"SIZE" help:"Most memory for the answers that are being made or sent, such as 256MiB; what does not fit is refused with 503. 0: an eighth of the process's memory limit or the machine's memory." group:"Listeners"`
	StaleIfError   time.Duration `default:"1h" help:"Let shared caches show an old list for this long while no server answers; at most --max-staleness where that is set. Somebody who has been delisted may be shown for as long. 0: never." group:"State"`

	GuardURL      cli.URL `name:"guard-url" placeholder:"URL" help:"Guard service whose state /api/status shows: up if it answers with a status below 500 within 6 s." group:"Outside services"`
	ChatURL       cli.URL `name:"chat-url" placeholder:"URL" help:"Chat platform, for /api/status." group:"Outside services"`
	CoinURL       cli.URL `name:"coin-url" placeholder:"URL" help:"Cryptocurrency network, for /api/status." group:"Outside services"`
	ChatAPIURL    cli.URL `name:"chat-api-url" placeholder:"URL" help:"API of a Discord-compatible chat platform, which knows users' pictures: URL/users/{id}. Without it, all pictures are drawn." group:"Outside services"`
	ChatCDNURL    cli.URL `name:"chat-cdn-url" placeholder:"URL" help:"Where that platform keeps the pictures: URL/avatars/{id}/{name}.png. Required with --chat-api-url." group:"Outside services"`
	ChatTokenFile string  `placeholder:"FILE" help:"File with the bot token for --chat-api-url." group:"Outside services"`

	cli.LogFlags
}

func (serveCmd) Help() string {
	return "Listens at once, and answers lists, checks and donations with 503 until the read model has caught up with the stream. " +
		"On SIGTERM or SIGINT it accepts no more requests, finishes those in progress, saves everything and ends. A second signal ends it at once. SIGHUP is ignored. " +
		"It sets GOMEMLIMIT itself unless the environment does."
}

// Run serves until the process's context ends and everything has been saved.
func (c *serveCmd) Run(p *process) error {
	if err := c.checkFlags(); err != nil {
		return err
	}

	adminToken, err := cli.AdminToken(c.AdminTokenFile)
	if err != nil {
		return err
	}

	public, err := c.publicConfig()
	if err != nil {
		return err
	}

	// Two signals must not end the server: SIGPIPE comes when the reader of the log has gone, and SIGHUP is sent by
	// operators who expect a reload.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	log := c.NewLog(p.stderr)
	defer log.Close()

	if c.DataDir == "" {
		c.DataDir = "data"
		if c.Demo {
			c.DataDir = "data-demo"
		}
	}

	return serve.Run(p.ctx, serve.Config{
		Flags:        c.Flags,
		Public:       public,
		AdminToken:   adminToken,
		Logger:       log.Logger,
		LostLines:    log.LostLines,
		NotifySocket: p.getenv("NOTIFY_SOCKET"),
	})
}

// publicConfig returns the configuration of the public listener. It reads the files that flags name.
func (c *serveCmd) publicConfig() (cfg httpapi.Config, err error) {
	chatToken, err := cli.ReadToken("--chat-token-file", c.ChatTokenFile, 1)
	if err != nil {
		return cfg, err
	}

	// The chat platform wants its callers to name themselves in this form.
	userAgent := ""
	if c.BaseURL != "" {
		userAgent = fmt.Sprintf("DiscordBot (%s, %s)", c.BaseURL, programVersion())
	}

	advice, err := readMarkdown("--advice-file", c.AdviceFile)
	if err != nil {
		return cfg, err
	}

	about, err := readMarkdown("--about-file", c.AboutFile)
	if err != nil {
		return cfg, err
	}

	var pages *site.Config
	if c.Site {
		pages = &site.Config{AppealsURL: c.AppealsURL, ReportURL: c.ReportURL, Advice: advice, About: about}
	}

	return httpapi.Config{
		BaseURL:        string(c.BaseURL),
		ProofsURL:      string(c.ProofsURL),
		Site:           pages,
		RateLimit:      c.RateLimit,
		MaxFollowers:   c.MaxFollowers,
		AnswerMemory:   int64(c.AnswerMemory),
		TrustedProxies: prefixesOf(c.TrustedProxies),
		StaleIfError:   c.StaleIfError,
		Status:         upstream.StatusConfig{Guard: string(c.GuardURL), Chat: string(c.ChatURL), Coin: string(c.CoinURL)},
		UserAgent:      userAgent,
		Avatars:        upstream.AvatarConfig{API: string(c.ChatAPIURL), CDN: string(c.ChatCDNURL), Token: chatToken},
	}, nil
}

// readMarkdown reads a text for the site. It returns "" if name is empty.
func readMarkdown(flag, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	text, err := os.ReadFile(name)
	if err == nil && len(text) > site.MaxText {
		err = fmt.Errorf("longer than %d bytes", site.MaxText)
	}
	if err != nil {
		return "", cli.FileError(flag, name, err)
	}
	if err := site.CheckText(string(text)); err != nil {
		return "", fmt.Errorf("%s: the file %w; leave the flag out for the site's own text", flag, err)
	}
	return string(text), nil
}

// network is the value of a flag: a range of addresses, or a single address.
type network netip.Prefix

// UnmarshalText parses 10.0.0.0/8 or 10.0.0.1.
func (n *network) UnmarshalText(text []byte) error {
	if addr, err := netip.ParseAddr(string(text)); err == nil {
		*n = network(netip.PrefixFrom(addr, addr.BitLen()))
		return nil
	}
	return (*netip.Prefix)(n).UnmarshalText(text)
}

func prefixesOf(networks []network) (prefixes []netip.Prefix) {
	for _, n := range networks {
		prefixes = append(prefixes, netip.Prefix(n))
	}
	return prefixes
}

// checkFlags rejects invalid flags before anything is touched.
func (c *serveCmd) checkFlags() error {
	rateInBounds := c.RateLimit >= 1e-4 && c.RateLimit <= 1e6 // false for NaN
	for _, bound := range []struct {
		flag string
		bad  bool
		need string
	}{
		{"rate-limit", c.RateLimit != 0 && !rateInBounds, "0, or 0.0001 to 1000000"},
		{"max-followers", c.MaxFollowers < 0, "0 or more"},
		{"max-connections", c.MaxConnections < 0, "0 or more"},
		{"idle-timeout", c.IdleTimeout <= 0, "more than 0"},
		{"answer-memory", c.AnswerMemory != 0 && c.AnswerMemory < serve.MinAnswerMemory, "0, or 32MiB or more"},
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

	if !c.AdminAddr.IsLoopback() && c.AdminTokenFile == "" {
		return cli.Usagef("--admin-addr: %s is reachable from other machines and needs --admin-token-file", c.AdminAddr)
	}

	if _, err := site.ParseAppeals(c.AppealsURL); err != nil {
		return cli.Usagef("--appeals-url: not an address like https://registry.example/appeals?report={reportId}: %w", err)
	}
	if err := site.CheckReports(c.ReportURL); err != nil {
		return cli.Usagef("--report-url: not an address like https://registry.example/report: %w", err)
	}

	// The token is read later. Check asks only whether there is one, so the name of its file will do.
	avatars := upstream.AvatarConfig{API: string(c.ChatAPIURL), CDN: string(c.ChatCDNURL), Token: c.ChatTokenFile}
	if err := avatars.Check(); err != nil {
		return cli.Usagef("--chat-api-url, --chat-cdn-url, --chat-token-file: %w", err)
	}

	if c.IsEmbedded() {
		return c.checkEmbedded()
	}
	return c.checkExternal()
}

// checkExternal checks the flags of a broker in another process.
func (c *serveCmd) checkExternal() error {
	if c.Demo {
		return cli.Usagef("--demo: needs the embedded broker, so it does not go with --nats-url (REGISTRY_NATS_URL)")
	}
	if c.EmbeddedNATSConfig != "" {
		return cli.Usagef("--embedded-nats-config: there is no embedded broker with --nats-url (REGISTRY_NATS_URL)")
	}
	return c.Broker().Check()
}

// checkEmbedded checks the flags of the embedded broker.
func (c *serveCmd) checkEmbedded() error {
	if c.StreamReplicas > 1 {
		return cli.Usagef("--stream-replicas: the embedded broker keeps one replica; more need --nats-url")
	}
	if c.EmbeddedNATSAddr == "-" {
		return nil // the broker has no listener
	}

	var addr cli.Address
	if err := addr.UnmarshalText([]byte(c.EmbeddedNATSAddr)); err != nil {
		return cli.Usagef("--embedded-nats-addr: %w", err)
	}
	if !addr.IsLoopback() && c.EmbeddedNATSConfig == "" {
		return fmt.Errorf("--embedded-nats-addr: %s is reachable from other machines and needs --embedded-nats-config with users", addr)
	}
	return nil
}
