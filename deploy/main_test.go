package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"example.org/registry/events/eventstest"
)

// registry is the program as a release has it: made once for all tests of this package.
var registry string

// released is the directory with the release that the program is of.
var released string

// testVersion is that release's.
const testVersion = "v0.0.0-test"

// TestMain makes a release. The race detector has nothing to say about other processes, so there is nothing to run when
// it is on.
func TestMain(m *testing.M) {
	if raceDetector {
		fmt.Println("deploy: other programs are tried here; not with the race detector")
		return
	}
	os.Exit(withRelease(m.Run))
}

func withRelease(run func() int) int {
	dir, err := os.MkdirTemp("", "registry-deploy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := release("..", dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	released, registry = dir, filepath.Join(dir, "registry_"+testVersion+"_linux_"+runtime.GOARCH)
	status := run()
	if err := goleak.Find(eventstest.ClientLeak()); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// release makes one of the sources in root, for this processor.
func release(root, dir string) error {
	cmd := exec.Command("go", "run", "./deploy/release", "-version", testVersion, "-platforms", "linux/"+runtime.GOARCH, "-out", dir)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("release: %w: %s", err, output)
	}
	return nil
}

// program finds a program that a test needs, and skips the test where it is not installed. In the gate it must be.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed; .ci/run does it", name)
	}
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}
