//go:build nightly

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/snapshots"
)

// installed skips the test, or fails it in CI, if there is no program or file that .ci/run installs.
func installed(t *testing.T, there bool, what string) {
	t.Helper()
	switch {
	case eventstest.RaceDetector:
		t.Skip("left out with the race detector: it sees nothing of other programs")
	case there:
	case os.Getenv("CI") == "true":
		t.Fatal("no", what, "which .ci/run installs")
	default:
		t.Skip("left out: no", what)
	}
}

// nodeModules links node's packages into dir, and returns node.
func nodeModules(t *testing.T, dir string) string {
	t.Helper()
	node, err := exec.LookPath("node")
	modules := filepath.Join(os.Getenv("REGISTRY_NPM"), "node_modules")
	_, noClient := os.Stat(filepath.Join(modules, "@nats-io"))
	installed(t, err == nil && noClient == nil, "node, or @nats-io below REGISTRY_NPM,")
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	return node
}

// postgres starts a database server and returns the variables by which its clients find it.
func postgres(t *testing.T) (env []string) {
	t.Helper()
	initdb, err := exec.LookPath("initdb")
	if err != nil { // Debian keeps it out of the path
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
		installed(t, len(found) > 0, "PostgreSQL,")
		initdb = found[len(found)-1]
	}
	initdb, err = filepath.EvalSymlinks(initdb)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "pg") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	credential := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // which the server refuses
		require.NoError(t, os.Chown(dir, 65534, 65534))
		credential.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	as := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(filepath.Dir(initdb), name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, credential
		return cmd
	}
	data := filepath.Join(dir, "data")
	out, err := as("initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", data).CombinedOutput()
	require.NoError(t, err, "%s", out)
	server := as("postgres", "-D", data, "-k", dir, "-F", "-c", "listen_addresses=")
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
	})
	env = []string{"PGHOST=" + dir, "PGUSER=postgres", "PGDATABASE=postgres"}
	_, err = registrytest.Await(t.Context(), "the database answers", func() bool { return psql(t, env, "SELECT 1") == "1" })
	require.NoError(t, err)
	return env
}

// psql returns what statements print, or the empty string if they fail.
func psql(t *testing.T, env []string, statements string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "psql", "-qAtX", "-v", "ON_ERROR_STOP=1")
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), strings.NewReader(statements)
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// outbox is a backend's database, and a worker that publishes what changes in it.
type outbox struct {
	*program
	t      *testing.T
	env    []string
	worker func() *exec.Cmd
	ran    []*registrytest.Process
}

func (o *outbox) sql(statements string) {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), "psql", "-qAtX", "-v", "ON_ERROR_STOP=1")
	cmd.Env, cmd.Stdin = append(os.Environ(), o.env...), strings.NewReader(statements)
	out, err := cmd.CombinedOutput()
	require.NoError(o.t, err, "%s\n%s", statements, out)
}

// kill ends the workers in the middle of what they do.
func (o *outbox) kill() {
	for _, p := range o.ran {
		p.End(os.Kill)
	}
	o.ran = nil
}

// begin starts two workers at once.
func (o *outbox) begin() {
	o.t.Helper()
	for range 2 {
		cmd := o.worker()
		p, err := registrytest.Begin(cmd, nil)
		require.NoError(o.t, err)
		o.ran = append(o.ran, p)
	}
}

// drained waits until the outbox has nothing left to publish.
func (o *outbox) drained() {
	o.t.Helper()
	o.until("nothing is unsent", func() bool { return psql(o.t, o.env, "SELECT count(*) FROM unsent") == "0" })
}

// state returns the state in the outbox of a scammer's row.
func (o *outbox) state(id int) string {
	return psql(o.t, o.env, fmt.Sprintf("SELECT state FROM outbox WHERE subject = 'registry.scammers.%d'", id))
}

// change does n things that moderators do, and moves some rows to another key.
func (o *outbox) change(draw *rand.Rand, n int) {
	o.t.Helper()
	var statements strings.Builder // each a transaction of its own; moderators pause, so that a worker meets some of them
	for range n {
		id, list := draw.IntN(30), []string{"scammers", "servers", "legit"}[draw.IntN(3)]
		key := fmt.Sprintf("WHERE list = '%s' AND id = %d", list, id)
		fmt.Fprintln(&statements, []string{
			fmt.Sprintf(`INSERT INTO reports VALUES ('%s', %d, 9000000000000001%02d, 'Nazwa \ "%d"', E'wziął\nzaliczkę', %t, 'p%d', %t, %d, now()) ON CONFLICT DO NOTHING`,
				list, id, id, draw.IntN(100), draw.IntN(2) == 0, id, draw.IntN(2) == 0, id),
			"UPDATE reports SET verified = NOT verified " + key,
			"UPDATE reports SET proofs_private = NOT proofs_private " + key,
			"UPDATE reports SET name = name || '!' " + key,
			"DELETE FROM reports " + key,
			"BEGIN; DELETE FROM reports " + key + "; ROLLBACK",
			fmt.Sprintf("UPDATE reports SET id = id + 30 %s AND NOT EXISTS (SELECT FROM reports WHERE list = '%s' AND id = %d)", key, list, id+30),
		}[draw.IntN(7)]+"; SELECT pg_sleep(0.03);")
	}
	o.sql(statements.String())
}

// same wants the registry to say of each row, and of no other, what the database says.
func (o *outbox) same() {
	o.t.Helper()
	var got, want []string
	collect := func(_ uint64, e events.Event) error {
		if d, ok := e.Data.(events.Entry); ok {
			got = append(got, fmt.Sprint(d.List, d.EntryID, d.ChatID, d.Name, d.Verified, d.Proofs))
		}
		return nil
	}
	_, err := snapshots.Read(strings.NewReader(o.run("export")), collect)
	require.NoError(o.t, err)

	for _, row := range strings.Split(psql(o.t, o.env, "SELECT to_json(r) FROM reports r"), "\n") {
		var r struct {
			List, Name    string
			ID            int
			ChatID        json.Number `json:"chat_id"`
			Verified      bool
			ProofsID      string `json:"proofs_id"`
			ProofsPrivate bool   `json:"proofs_private"`
		}
		require.NoError(o.t, json.Unmarshal([]byte(row), &r))
		if r.ProofsPrivate {
			r.ProofsID = ""
		}
		want = append(want, fmt.Sprint(events.List(r.List), r.ID, r.ChatID, r.Name, r.Verified, events.Proofs{ID: r.ProofsID, Private: r.ProofsPrivate}))
	}
	require.ElementsMatch(o.t, want, got)
	require.Greater(o.t, len(got), 10)
}

// TestOutbox runs the outbox of events/examples with a real database: its workers publish every change, are killed in the middle
// of it, and publish while no server of the registry runs. What the registry then lists is what the database has. What it refuses
// waits for a correction, and is no obstacle to the rest.
func TestOutbox(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../events/examples")
	require.NoError(t, err)
	env := postgres(t)
	for _, language := range []string{"mjs", "py"} {
		t.Run(language, func(t *testing.T) {
			o := &outbox{t: t, program: newProgram(t)}
			o.env = append(env[:2:2], "PGDATABASE="+language)
			psql(t, env, "CREATE DATABASE "+language)
			b := eventstest.Broker(t)
			stream := eventstest.Stream(t, eventstest.Connect(t, b))
			o.flags = append(o.flags, "--nats-url="+b.ClientURL())
			dir := t.TempDir()
			script := filepath.Join(dir, "outbox."+language)
			text, err := os.ReadFile(filepath.Join(examples, "outbox."+language))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(script, text, 0o600))
			program := "/usr/bin/python3" // Debian's packages are for this one
			more := append(o.env, "NATS_URL="+b.ClientURL())
			if language == "mjs" {
				program = nodeModules(t, dir)
			} else {
				installed(t, exec.Command(program, "-c", "import psycopg").Run() == nil, "python3-psycopg,")
				more = append(pythonModules(t), more...)
			}
			o.worker = func() *exec.Cmd {
				cmd := exec.Command(program, script)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), more...)
				return cmd
			}
			t.Cleanup(o.kill)

			draw := rand.New(rand.NewPCG(1, 2))
			o.sql(`CREATE TABLE reports (list text, id bigint, chat_id numeric(20), name text, reason text, verified boolean, proofs_id text,
				proofs_private boolean, report_id bigint, reported_at timestamptz, PRIMARY KEY (list, id))`)
			o.change(draw, 30)
			sql, err := os.ReadFile(filepath.Join(examples, "outbox.sql"))
			require.NoError(t, err)
			o.sql(string(sql))
			o.begin()
			o.change(draw, 30)
			o.drained() // though no server says what is valid
			o.start()
			for range 3 {
				o.change(draw, 20)
				o.kill()
				o.change(draw, 10)
				o.begin()
			}

			// A row that is refused says why, and is published once it is corrected.
			o.sql("INSERT INTO reports VALUES ('scammers', 1000, 1, '', '', true, NULL, false, 1, now())")
			o.drained()
			require.Contains(t, o.state(1000), "data.name: ")
			o.sql("UPDATE reports SET name = 'Nazwa' WHERE id = 1000")
			o.drained()

			// So does a row of a database that came back from a backup.
			o.sql("UPDATE outbox SET revision = revision - 1, state = 'new' WHERE subject = 'registry.scammers.1000'")
			o.drained()
			require.Contains(t, o.state(1000), "stale: the registry has revision ")

			// No trigger fires: a new worker finds the lost rows.
			o.kill()
			o.sql(`CREATE TABLE kept AS SELECT * FROM reports WHERE id % 4 > 0; TRUNCATE reports;
				SET session_replication_role = replica; INSERT INTO reports SELECT * FROM kept; UPDATE reports SET name = name || '?'`)
			o.begin()
			o.until("the lost rows are found", func() bool { return psql(t, o.env, "SELECT count(*) FROM outbox WHERE data->>'name' LIKE '%?'") != "0" })
			o.drained()
			_, err = stream.Info(t.Context())
			require.NoError(t, err)
			o.applied(stream.CachedInfo().State.LastSeq)
			o.same()
			require.Zero(t, o.projection().Rejected)
		})
	}
}
