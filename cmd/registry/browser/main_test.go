//go:build !race

package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"
)

// patience bounds every wait; nothing is expected to take this long.
const patience = 2 * time.Minute

// shared is what all tests use: made by TestMain, read by the tests.
var shared struct {
	browser context.Context // of the running browser
	axe     string          // the script
	site    *program        // the demonstration, with the harmful entries on top
	loading *program        // one that has no broker, so it is loading for ever
}

// TestMain starts the programs once, for all tests.
func TestMain(m *testing.M) {
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
	if missing != "" {
		if os.Getenv("CI") == "true" {
			return 1, fmt.Errorf("browser tests: %s", missing)
		}
		fmt.Println("browser tests skipped:", missing)
		return 0, nil
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

// tools finds what the tests need beyond Go; missing says what there is not.
func tools() (chromium, axe, missing string) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return "", "", "no chromium on this machine"
	}
	script, err := os.ReadFile(os.Getenv("REGISTRY_AXE"))
	if err != nil {
		return "", "", "REGISTRY_AXE must be the path of axe-core's axe.min.js: " + err.Error()
	}
	return chromium, string(script), ""
}

// startBrowser prepares a browser with an empty profile, that says nothing to the world by itself.
// The sandbox needs rights that containers and root do not have; the pages are our own.
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
