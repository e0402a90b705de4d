//go:build unix && !race

package nights

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
)

// shutter is a running broker.
type shutter interface{ Shutdown() }

// brokerAt returns a function that starts a broker with the same address each time, and its address:
// the embedded broker alone, or -night.nodes of the program -night.nats.
func brokerAt(dir string) (start func() (shutter, error), url string, err error) {
	var addrs, routes []string
	for range 2 * *natsNodes {
		address, err := eventstest.Address()
		if err != nil {
			return nil, "", err
		}
		addrs = append(addrs, address)
	}
	addrs, routes = addrs[:*natsNodes], addrs[*natsNodes:]
	if *natsServer == "" {
		return func() (shutter, error) {
			return broker.Start(broker.Config{StoreDir: dir, Addr: addrs[0], UnsafeNoSync: true})
		}, "nats://" + addrs[0], nil
	}
	return func() (shutter, error) { return startNodes(dir, addrs, routes) }, "nats://" + strings.Join(addrs, ",nats://"), nil
}

// nodes are processes of nats-server.
type nodes []*registrytest.Process

func startNodes(dir string, addrs, routes []string) (all nodes, err error) {
	for i, address := range addrs {
		own := filepath.Join(dir, fmt.Sprint("node", i))
		if err := os.MkdirAll(own, 0o700); err != nil {
			return nil, err
		}
		config := fmt.Sprintf("server_name: node%d\nlisten: %q\njetstream { store_dir: %q }\n", i, address, own)
		if len(addrs) > 1 {
			config += fmt.Sprintf("cluster { name: %q, listen: %q, routes: [\"nats://%s\"], no_advertise: true }\n", routes[0], routes[i], strings.Join(routes, `", "nats://`))
		}
		path := own + ".conf"
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			return nil, err
		}
		node, err := registrytest.Begin(exec.Command(*natsServer, "-c", path, "-l", own+".log"), nil)
		if err != nil {
			return nil, err
		}
		all = append(all, node)
	}
	return all, nil
}

// Shutdown kills all nodes.
func (n nodes) Shutdown() {
	for _, node := range n {
		node.End(os.Kill)
	}
}
