package deploy

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"example.org/registry/events/eventstest"
)

// order is one command line, and what each role gets: of those not named, a refusal that contains the last field.
type order struct {
	args []string
	may  string // roles for which it ends with status 0
	says string // on standard output, for them
	lack string // what the broker refuses the others
}

const info, create = "$JS.API.STREAM.INFO.", "$JS.API.CONSUMER.CREATE."

// orders are the commands that connect to the broker. The replica's and the publisher's are in other tests, too: here each
// role gives every order.
func orders(t *testing.T, snapshot, admin string) []order {
	t.Helper()
	const readers = "replica snapshots operator"
	return []order{
		{[]string{"publish", eventFile(t, 20)}, "publisher operator", "sent", "publish to registry."},
		{[]string{"verify", "--admin-addr=" + admin}, readers, "no difference", create + "REGISTRY."},
		{[]string{"snapshot", "list"}, readers, snapshot, info + "OBJ_REGISTRY_SNAPSHOTS"},
		{[]string{"snapshot", "verify", snapshot}, readers, "good", info + "OBJ_REGISTRY_SNAPSHOTS"},
		{[]string{"snapshot", "restore", dataDir, snapshot}, readers, "restored", info + "OBJ_REGISTRY_SNAPSHOTS"},
		{[]string{"export", snapshot}, readers, "registry.entry.listed", info + "OBJ_REGISTRY_SNAPSHOTS"},
		{[]string{"rejected", "list"}, "operator", "registry.scammers.bad", "REGISTRY_REJECTED"},
		{[]string{"rejected", "retry", "7"}, "", "", "REGISTRY_REJECTED"},
		{[]string{"rejected", "purge", "registry.scammers.nobody"}, "operator", "0 copies erased", "REGISTRY_REJECTED"},
	}
}

// TestOrders: each role, with the real commands and the committed accounts. What it may it can; what it may not ends with
// status 1 and one line that names what the broker refuses.
func TestOrders(t *testing.T) {
	c := startNode(t)
	operator := c.connect(t, "operator")
	createStreams(t, c, operator)
	js := jetStream(t, operator)
	eventstest.Publish(t, js, eventstest.Events(199, 1)...)
	eventstest.PublishRaw(t, js, "registry.scammers.bad", []byte("{}"))
	writer := serve(t, append(c.as("snapshots"), "--snapshot-every=0")...)
	await(t, writer.Admin+"/projection", `"rejected":1,`)
	admin := strings.TrimPrefix(writer.Admin, "http://")
	made := output(t, registry, "snapshot", "create", "--admin-addr="+admin)
	snapshot, _, _ := strings.Cut(made, ":")

	var group errgroup.Group // most of the time a refused command waits for an answer
	group.SetLimit(8)
	for _, o := range orders(t, snapshot, admin) {
		for _, role := range []string{"publisher", "replica", "snapshots", "operator"} {
			if o.args[1] != "retry" || role != "operator" { // his comes below
				group.Go(func() error { c.give(t, role, o); return nil })
			}
		}
	}
	_ = group.Wait() // of functions that report for themselves
	c.give(t, "operator", order{[]string{"rejected", "retry", "200"}, "operator", "200", ""})
	await(t, writer.Admin+"/projection", `"rejected":2,`) // the event is no better than it was
	c.give(t, "operator", order{[]string{"rejected", "purge", "registry.scammers.bad"}, "operator", "2 copies erased", ""})

	late := serve(t, append(c.as("replica"), "--snapshot-every=0")...)
	await(t, late.Admin+"/readyz", "")
	if !strings.Contains(late.said(), "starting from a snapshot") {
		t.Error("a new replica does not start from the snapshot")
	}
}

// dataDir is what give replaces by one of the command's own.
const dataDir = "--data-dir=NEW"

func (c *cluster) give(t *testing.T, role string, o order) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := append(slices.Clone(o.args), c.as(role)...)
	if i := slices.Index(args, dataDir); i >= 0 {
		args[i] = "--data-dir=" + t.TempDir()
	}
	cmd := exec.CommandContext(ctx, registry, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	said, err := cmd.Output()
	what := role + ": registry " + strings.Join(o.args, " ")
	if named(o.may, role) {
		if err != nil || !strings.Contains(string(said), o.says) {
			t.Errorf("%s: %v: %.300s %s", what, err, said, complaint.String())
		}
		return
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%s: %v, want status 1", what, err)
	}
	if text := complaint.String(); !strings.Contains(text, "this user of the broker may not publish to") || !strings.Contains(text, o.lack) {
		t.Errorf("%s: %s, want that it lacks %s", what, text, o.lack)
	}
}

// A replica that is told to make snapshots cannot, says once which permission it lacks and what to do, and goes on.
func TestReplicaMayNotMakeSnapshots(t *testing.T) {
	c := startNode(t)
	operator := c.connect(t, "operator")
	createStreams(t, c, operator)
	eventstest.Publish(t, jetStream(t, operator), eventstest.Events(20, 1)...)
	r := serve(t, append(c.as("replica"), "--snapshot-every=1s")...)
	await(t, r.Admin+"/projection", `"checkpoint":20,`)
	const why = "may not publish to $O.REGISTRY_SNAPSHOTS.C.lock; where another server makes the snapshots, give this one --snapshot-every 0"
	await(t, r.Admin+"/metrics", "registry_snapshot_failures_total 2")
	if n := strings.Count(r.said(), why); n != 1 {
		t.Errorf("said %d times", n)
	}
	await(t, r.Admin+"/readyz", "")
	if asked, err := exec.CommandContext(t.Context(), registry, "snapshot", "create", "--admin-addr="+strings.TrimPrefix(r.Admin, "http://")).CombinedOutput(); err == nil ||
		!strings.Contains(string(asked), "$O.REGISTRY_SNAPSHOTS.C.lock") {
		t.Errorf("an operator is told: %v %s", err, asked)
	}
}
