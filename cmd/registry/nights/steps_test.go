//go:build unix && !race

package nights

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// plan is a night.
type plan struct {
	shared  bool // the servers share a broker beside them; else the first embeds it
	servers int
	steps   []step
}

// step is one of steps with two numbers that decide about details, such as the server it is about.
type step struct {
	name string
	a, b int
}

// String returns what parse reads.
func (p plan) String() string {
	var b strings.Builder
	fmt.Fprint(&b, p.shared, " ", p.servers)
	for _, s := range p.steps {
		fmt.Fprint(&b, "; ", s.name, " ", s.a, " ", s.b)
	}
	return b.String()
}

func parse(text string) (p plan, err error) {
	head, rest, _ := strings.Cut(text, ";")
	if _, err := fmt.Sscan(head, &p.shared, &p.servers); err != nil {
		return p, err
	}
	for part := range strings.SplitSeq(rest, ";") {
		var s step
		if _, err := fmt.Sscan(part, &s.name, &s.a, &s.b); err != nil {
			return p, fmt.Errorf("%q: %w", part, err)
		}
		if steps()[s.name] == nil {
			return p, fmt.Errorf("there is no step %q", s.name)
		}
		p.steps = append(p.steps, s)
	}
	return p, nil
}

// drawn has the steps by how often they are drawn.
const drawn = `publish publish publish publish repeat displace displace purge
	kill kill stop start start image image snapshot snapshot file file tombstones tombstones
	losestream losestream rewind rewind rewind imageback losedir losedir loseall losestore losestore stumble losedir
	recover recover recover recoverfile recoverfile recreate rebuild restore accept
	stranger clone`

// planOf draws a night.
func planOf(seed int) plan {
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	p := plan{shared: r.IntN(2) == 0, servers: 1 + r.IntN(2), steps: []step{{"publish", 7, r.IntN(1000)}}}
	names := strings.Fields(drawn)
	for range 4 + r.IntN(9) {
		p.steps = append(p.steps, step{names[r.IntN(len(names))], r.IntN(100), r.IntN(1000)})
	}
	return p
}

// steps returns what can happen. A step that makes no sense at its place does nothing.
func steps() map[string]func(n *night, a, b int) {
	return map[string]func(n *night, a, b int){
		// The backend.
		"publish":  (*night).publish,
		"repeat":   (*night).repeat,
		"displace": (*night).displace,
		"recreate": (*night).recreate,
		// Servers.
		"kill":    func(n *night, a, b int) { n.kill(n.server(a)) },
		"stop":    func(n *night, a, b int) { n.stop(n.server(a)) },
		"start":   func(n *night, a, b int) { n.start(n.server(a)) },
		"stumble": (*night).stumble,
		"rebuild": (*night).rebuild,
		"accept":  func(n *night, a, b int) { n.acceptLoss(n.server(a)) },
		// Disks.
		"losedir":   func(n *night, a, b int) { n.loseDir(n.server(a)); n.start(n.server(a)) },
		"loseall":   func(n *night, a, b int) { n.loseAll() },
		"losestore": (*night).loseStore,
		// Streams.
		"losestream": func(n *night, a, b int) { n.loseStream() },
		"purge":      (*night).purge,
		"rewind":     (*night).rewind,
		// Copies.
		"image":      func(n *night, a, b int) { n.image() },
		"imageback":  (*night).imageBack,
		"snapshot":   func(n *night, a, b int) { n.snapshot(n.server(a)) },
		"file":       func(n *night, a, b int) { n.file(n.server(a)) },
		"restore":    (*night).restore,
		"tombstones": func(n *night, a, b int) { n.tombstones(n.server(a)) },
		// The way back, and others' registries.
		"recover":     func(n *night, a, b int) { n.recover(n.server(a)) },
		"recoverfile": (*night).recoverFile,
		"stranger":    (*night).stranger,
		"clone":       (*night).clone,
	}
}
