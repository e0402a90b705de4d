//go:build nightly

package httpapi

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// process is a program that runs until the test ends, and its output line by line.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func start(t *testing.T, dir string, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), name, args...), lines: make(chan string, 1000)}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.cmd.Stderr = p.cmd.Stdout // what a bot complains of is not looked at, and neither is waited for
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case p.lines <- lines.Text():
			default: // nobody reads what a bot prints
			}
		}
	}()
	t.Cleanup(p.stop)
	return p
}

// stop kills the process, and returns when it has ended.
func (p *process) stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	for range p.lines { // Wait closes the pipe
	}
	_ = p.cmd.Wait()
}

func (p *process) tell(t *testing.T, command string) {
	t.Helper()
	_, err := io.WriteString(p.in, command+"\n")
	require.NoError(t, err)
}

// next is the next line, of the stand-in for the platform.
func (p *process) next(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-p.lines:
		if ok {
			return line
		}
		t.Fatal("the program has ended")
	case <-time.After(60 * time.Second):
		t.Fatal("no line within a minute")
	}
	return ""
}

// discordFront is the registry as a bot sees it. It can be out of order, and knows whom bots named, and
// which requests came less than a second after the path was refused.
type discordFront struct {
	f *fixture

	mu       sync.Mutex
	down     bool
	named    map[string]bool
	refused  map[string]time.Time // by path
	refusals int
	hasty    []string
}

func (d *discordFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	if id := r.URL.Query().Get("id"); id != "" {
		d.named[id] = true
	}
	if at, ok := d.refused[r.URL.Path]; ok && time.Since(at) < 900*time.Millisecond {
		d.hasty = append(d.hasty, r.URL.Path)
	}
	down := d.down && !strings.HasPrefix(r.URL.Path, "/api/changes")
	d.mu.Unlock()

	answer := &statusWriter{ResponseWriter: w}
	if down {
		unusual := []string{"0", "Wed, 21 Oct 2015 07:28:00 GMT", "", "1, 1", "-5", "0.1"}
		answer.Header().Set("Retry-After", unusual[d.refusals%len(unusual)])
		answer.WriteHeader(http.StatusServiceUnavailable)
	} else {
		d.f.public.ServeHTTP(answer, r)
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if answer.status == http.StatusServiceUnavailable {
		d.refused[r.URL.Path] = time.Now()
		d.refusals++
	}
	if answer.status == http.StatusGone { // a bot begins again
		d.refused["/api/changes"] = time.Now()
	}
}

func (d *discordFront) refusalCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refusals
}

// statusWriter knows the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (d *discordFront) breakDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

// The Discord bots of the page /boty are run as they stand there, with the real libraries, against a stand-in for the
// platform. They tell moderators of everyone who is listed, whether they join, were there before, or are listed later; of
// everyone who is cleared; and of all they could not check. They say nothing twice, name nobody to the registry who is not
// listed, pause after each refusal, and do nothing else. A bot with a wrong channel says so and ends.
func TestDiscordBots(t *testing.T) {
	t.Parallel()
	modules := filepath.Join(os.Getenv("REGISTRY_NPM"), "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "discord.js")); err != nil {
		notInstalled(t, "discord.js below REGISTRY_NPM")
	}
	helpers, err := filepath.Abs("testdata/discord")
	require.NoError(t, err)
	node, python := program(t, "node"), systemPython(t)
	for language, command := range map[string][]string{
		"mjs": {node, "--import", "./elsewhere.mjs", "discordbot.mjs"},
		"py":  {python, "discordbot.py"},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
			require.NoError(t, os.CopyFS(dir, os.DirFS(helpers)))
			f := serve(t, withSite)
			f.set(func(r *Readiness) { r.AsOf = time.Now() })
			front := &discordFront{f: f, named: map[string]bool{}, refused: map[string]time.Time{}}
			server := httptest.NewServer(front)
			t.Cleanup(func() { f.public.EndFollowing(); server.Close() })
			code := f.getFrom(t, server.URL+"/boty/discordbot."+language)
			impatient := regexp.MustCompile(`(?m)^((?:const )?AGAIN = )30`).ReplaceAllString(code, "${1}1")
			if impatient == code || !strings.Contains(code, server.URL) {
				t.Fatal("the bot has no AGAIN = 30, or not the address of the registry")
			}
			writeFile(t, dir, "discordbot."+language, impatient)
			testDiscordBot(t, dir, front, server.URL, node, command)
		})
	}
}

// systemPython is a Python that has discord.py.
func systemPython(t *testing.T) string {
	t.Helper()
	for _, python := range []string{program(t, "python3"), "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import discord").Run() == nil {
			return python
		}
	}
	notInstalled(t, "discord.py (the package python3-discord)")
	return ""
}

func testDiscordBot(t *testing.T, dir string, front *discordFront, address, node string, command []string) {
	const (
		before, calm, risky, later, unchecked, lost = "99000000000000000001", "99000000000000000002", "99000000000000000003", "99000000000000000004", "99000000000000000005", "99000000000000000006"
		away, met, stranger                         = "99000000000000000007", "99000000000000000008", "99000000000000000009"
		warn, risk, unknown, none                   = "🛑", "⚠️", "❔", "ℹ️"
		why, known                                  = "(/api/ranges/", "Udało się sprawdzić"
	)
	f := front.f
	list := func(id string, verified bool) {
		f.apply(events.Entry{Revision: 1, List: events.Scammers, EntryID: "e-" + id, ChatID: id, Name: "@everyone", Verified: verified, ReportID: "v", ReportedAt: asOf()})
	}
	delist := func(id string) {
		f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "e-" + id})
	}

	list(before, true)
	platform := start(t, dir, nil, node, "platform.mjs", before, calm, later)
	env := []string{"PLATFORM=" + platform.next(t), "CHANNEL=1000000000000000002", "DISCORD_TOKEN=x", "PYTHONPATH=."}
	run := func() *process { return start(t, dir, env, command[0], command[1:]...) }
	expect := func(sign, id string, also ...string) {
		t.Helper()
		line := platform.next(t)
		var said struct {
			Content  string
			Mentions []string
		}
		text, isSaid := strings.CutPrefix(line, "said ")
		if err := json.Unmarshal([]byte(text), &said); !isSaid || err != nil {
			t.Fatalf("%q, want %s %s", line, sign, id)
		}
		link := address + "/wpis/scammers/e-" + id
		if sign == unknown || sign == none {
			link = address + "/?search=" + id
		}
		if !strings.HasPrefix(said.Content, sign) || !strings.Contains(said.Content, "<@"+id+">") || !strings.HasSuffix(said.Content, "\n"+link) {
			t.Fatalf("%q, want %s %s with %s", said.Content, sign, id, link)
		}
		for _, text := range also {
			if !strings.Contains(said.Content, text) {
				t.Errorf("%q does not say %q", said.Content, text)
			}
		}
		if strings.Contains(said.Content, "everyone") || said.Mentions == nil || len(said.Mentions) > 0 {
			t.Errorf("%q may mention %q", said.Content, said.Mentions)
		}
	}
	wrong := start(t, dir, append(env, "CHANNEL=1000000000000000005"), command[0], command[1:]...)
	for line := ""; !strings.Contains(line, "CHANNEL=1000000000000000005: bot nie widzi takiego kanału"); {
		if line = wrong.next(t); strings.HasPrefix(line, "said ") {
			t.Fatalf("a bot with a wrong channel has %s", line)
		}
	}
	wrong.stop()

	bot := run()
	expect(warn, before)
	list(stranger, true) // nobody's concern: not on the server

	platform.tell(t, "join "+calm+"1") // nothing is said of somebody on no list
	list(risky, false)
	platform.tell(t, "join "+risky)
	expect(risk, risky)
	list(later, false)
	expect(risk, later)
	list(later, true)
	expect(warn, later)
	delist(later)
	expect(none, later)

	front.breakDown(true)
	platform.tell(t, "join "+unchecked)
	expect(unknown, unchecked, why, ": 503")
	eventstest.Until(t, func() bool { return front.refusalCount() >= 5 })
	front.breakDown(false)
	expect(none, unchecked, known)

	f.model.NameFeed("another") // the next request for changes is 410, so everyone is checked
	list(calm, true)
	expect(warn, calm)

	platform.tell(t, "meet "+met)
	list(met, true)
	list(lost, true) // so the bot has taken the change of met by now
	platform.tell(t, "join "+lost)
	expect(warn, lost)
	platform.tell(t, "again") // a session that is lost: somebody has joined whom no event named
	expect(warn, met)

	bot.stop()
	delist(before)
	list(away, true)
	platform.tell(t, "join "+away)
	run()
	for said := map[string]bool{}; !said[before] || !said[away]; { // in the order of their hashes
		line := platform.next(t)
		switch {
		case strings.Contains(line, "<@"+before+">") && strings.Contains(line, none):
			said[before] = true
		case strings.Contains(line, "<@"+away+">") && strings.Contains(line, warn):
			said[away] = true
		case strings.Contains(line, "<@"+met+">"): // the bot was killed before it wrote down that it had said so
		default:
			t.Fatalf("after a restart: %s", line)
		}
	}
	delist(met) // nothing else has been said meanwhile
	expect(none, met)

	front.mu.Lock()
	defer front.mu.Unlock()
	if len(front.hasty) > 0 {
		t.Errorf("asked again within a second of a refusal: %q", front.hasty)
	}
	for _, id := range []string{calm + "1", unchecked, stranger} {
		if front.named[id] {
			t.Errorf("the registry was asked of %s", id)
		}
	}
}
