//go:build unix && !race && nightly

package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// patience bounds every wait. Nothing is expected to take this long.
const patience = 2 * time.Minute

// shared holds what all tests use. TestMain sets it before they run.
var shared struct {
	browser context.Context      // of the running browser
	axe     string               // the script
	site    *registrytest.Server // the demonstration, with the harmful entries on top
	loading *registrytest.Server // one that has no broker, so it never finishes loading
}

// TestMain starts the programs once, for all tests.
func TestMain(m *testing.M) {
	flag.Parse()
	status, err := run(m)
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(status)
}

func run(m *testing.M) (status int, err error) {
	chromium, axe, missing := tools()
	if missing != nil && eventstest.FullRun() && os.Getenv("CI") == "true" {
		return 1, fmt.Errorf("browser tests: %w", missing)
	}
	if missing != nil {
		fmt.Println("browser tests are left out:", missing)
		err = flag.Set("test.run", "^$") // so that "go test" says that there are no tests to run
		return m.Run(), err
	}
	shared.axe = axe
	dir, err := os.MkdirTemp("", "registry-browser")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	stop, err := startPrograms(dir)
	defer stop()
	if err != nil {
		return 1, err
	}
	ctx, cancel := startBrowser(chromium, filepath.Join(dir, "profile"))
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		return 1, fmt.Errorf("%s: %w", chromium, err)
	}
	shared.browser = ctx
	return m.Run(), nil
}

// tools finds what the tests need beyond Go. If REGISTRY_AXE is set, they must run.
func tools() (chromium, axe string, missing error) {
	file := os.Getenv("REGISTRY_AXE")
	if file == "" {
		return "", "", errors.New("REGISTRY_AXE is not set: it must be the path of axe-core's axe.min.js")
	}
	script, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	chromium, err = exec.LookPath("chromium")
	return chromium, string(script), err
}

// startPrograms builds the registry and starts it twice. stop is never nil.
func startPrograms(dir string) (stop func(), err error) {
	var running []*registrytest.Server
	stop = func() {
		for _, s := range running {
			s.End(syscall.SIGTERM)
		}
	}
	binary, err := registrytest.Build(dir)
	if err != nil {
		return stop, err
	}
	nobody, err := eventstest.Address()
	if err != nil {
		return stop, err
	}
	start := func(name string, flags ...string) (*registrytest.Server, error) {
		cmd := registrytest.Command(binary, append(flags, "--data-dir="+filepath.Join(dir, name))...)
		s, err := registrytest.Start(cmd, filepath.Join(dir, name+".log"), nil)
		if err == nil {
			running = append(running, s)
		}
		return s, err
	}
	if shared.site, err = start("demo", "--demo", "--proofs-url=https://proofs.example.org", "--appeals-url=https://appeals.example.org/form?nr={reportId}"); err != nil {
		return stop, err
	}
	if shared.loading, err = start("loading", "--nats-url=nats://"+nobody); err != nil {
		return stop, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := shared.loading.WaitListening(ctx); err != nil {
		return stop, err
	}
	if err := shared.site.WaitReady(ctx); err != nil {
		return stop, err
	}
	return stop, publishHarmful(ctx, shared.site)
}

// publishHarmful publishes the harmful entries and returns once the pages show them.
func publishHarmful(ctx context.Context, site *registrytest.Server) error {
	nc, err := nats.Connect(site.NATS)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	publisher, last := publish.New(js, publish.Config{}), uint64(0)
	for _, entry := range harmful() {
		ack, err := publisher.Publish(ctx, events.Event{ID: "1", Source: "/browser", Type: events.TypeListed, Time: time.Now(), Data: entry})
		if err != nil {
			return err
		}
		last = ack.Sequence
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, site.HTTP+"/api/check?id=1", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Registry-Min-Sequence", fmt.Sprint(last))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("check after publishing: %s", resp.Status)
	}
	return nil
}

// startBrowser prepares a browser with an empty profile that contacts nobody by itself. The sandbox
// needs rights that containers and root do not have; the pages are our own.
func startBrowser(chromium, profile string) (context.Context, context.CancelFunc) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-features", "Translate,BackForwardCache"), // a page that comes back from that cache tells nobody
		chromedp.Flag("lang", "pl"))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	return ctx, func() {
		limited, done := context.WithTimeout(ctx, 10*time.Second)
		defer done()
		_ = chromedp.Cancel(limited) // it has nothing to lose
		cancel()
		stop()
	}
}
