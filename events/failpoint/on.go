//go:build faultinject

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ErrInjected is the error of a point that is set to fail.
var ErrInjected = errors.New("injected failure")

// point is the failure set for a name.
type point struct {
	action string // kill, error or block
	at     int    // number of the hit
	hits   int
}

// armed is read from the environment at the first hit.
var armed = sync.OnceValue(func() map[string]*point {
	points := map[string]*point{}
	for spec := range strings.SplitSeq(os.Getenv("REGISTRY_FAILPOINTS"), ",") {
		if spec == "" {
			continue
		}
		name, action, ok := strings.Cut(spec, "=")
		action, hit, _ := strings.Cut(action, ":")
		at, err := strconv.Atoi(hit)
		if !ok || err != nil {
			panic(fmt.Sprintf("REGISTRY_FAILPOINTS: %q is not name=action:hit", spec))
		}
		points[name] = &point{action: action, at: at}
	}
	return points
})

var mu sync.Mutex // guards the counts

// Hit fails as the environment demands for this hit of the point. Any goroutine may call it.
func Hit(name string) error {
	p := armed()[name]
	if p == nil || !p.now() {
		return nil
	}
	switch p.action {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // cannot fail for the own process
		select {}
	case "block":
		select {}
	}
	return fmt.Errorf("%s: %w", name, ErrInjected)
}

func (p *point) now() bool {
	mu.Lock()
	defer mu.Unlock()
	p.hits++
	return p.hits == p.at
}
