//go:build nightly

package main

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/projector"
)

// TestPublishingExamples runs the programs of events/PUBLISHING.md, Python with a stand-in for the client:
// each publishes one valid event, and prints its sequence.
func TestPublishingExamples(t *testing.T) {
	t.Parallel()
	for language, c := range map[string]struct {
		file    string
		command func(t *testing.T, dir string) *exec.Cmd
		want    events.Type
	}{
		"js": {"publish.mjs", func(t *testing.T, dir string) *exec.Cmd {
			return exec.Command(nodeModules(t, dir), filepath.Join(dir, "publish.mjs"))
		}, events.TypeListed},
		"python": {"publish.py", func(t *testing.T, dir string) *exec.Cmd {
			cmd := exec.Command("python3", filepath.Join(dir, "publish.py"))
			cmd.Env = pythonModules(t)
			return cmd
		}, events.TypeDelisted},
		"go": {"main.go", func(t *testing.T, dir string) *exec.Cmd {
			installed(t, true, "Go")
			return exec.Command("go", "run", filepath.Join(dir, "main.go"))
		}, events.TypeListed},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := publishingProgram(t, language, filepath.Join(dir, c.file))
			p.publishes(t, c.command(t, dir), c.want)
		})
	}
}

// pythonModules returns an environment in which Python finds the stand-in for nats-py.
func pythonModules(t *testing.T) []string {
	t.Helper()
	_, err := exec.LookPath("python3")
	installed(t, err == nil, "python3,")
	modules, err := filepath.Abs("testdata/python")
	require.NoError(t, err)
	return append(os.Environ(), "PYTHONPATH="+modules, "PYTHONDONTWRITEBYTECODE=1")
}

// TestRejectedExamples: each program of events/examples prints the copies of rejected events that were made before it began, from
// the number on that it is told. If no copy has that number, the stream was lost: it says so, and prints all.
func TestRejectedExamples(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../events/examples")
	require.NoError(t, err)
	p := startProgram(t)
	p.publish(oneGood(t))
	for i := range 3 {
		eventstest.PublishRaw(t, p.stream(), fmt.Sprint("registry.scammers.bad", i), []byte("żółć"))
		p.until("the copy", func() bool { return p.projection().Rejected == uint64(i+1) }) // copies are made side by side
	}
	for name, command := range map[string]func(t *testing.T, dir, last string) *exec.Cmd{
		"rejected.mjs": func(t *testing.T, dir, last string) *exec.Cmd {
			text, err := os.ReadFile(filepath.Join(examples, "rejected.mjs"))
			require.NoError(t, errors.Join(err, os.WriteFile(filepath.Join(dir, "rejected.mjs"), text, 0o600)))
			return exec.Command(nodeModules(t, dir), filepath.Join(dir, "rejected.mjs"), last)
		},
		"rejected.py": func(t *testing.T, _, last string) *exec.Cmd {
			cmd := exec.Command("python3", filepath.Join(examples, "rejected.py"), last)
			cmd.Env = pythonModules(t)
			return cmd
		},
	} {
		for last, first := range map[string]int{"1": 1, "9": 0} {
			t.Run(name+" "+last, func(t *testing.T) {
				cmd := command(t, t.TempDir(), last)
				if cmd.Env == nil {
					cmd.Env = os.Environ()
				}
				cmd.Env = append(cmd.Env, "NATS_URL="+p.NATS)
				out, err := cmd.StdoutPipe()
				require.NoError(t, err)
				cmd.Stderr = os.Stderr
				require.NoError(t, cmd.Start())
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })

				lines := bufio.NewScanner(out)
				for i := first; i < 3; i++ {
					require.True(t, lines.Scan(), "the program has ended")
					require.Regexp(t, fmt.Sprintf(`^%d registry\.scammers\.bad%d event: not JSON.* żółć$`, i+1, i), lines.Text())
				}
			})
		}
	}
}

// oneGood returns a line with one good event.
func oneGood(t *testing.T) string {
	t.Helper()
	lines, _ := made(t, 1)
	return lines[0]
}

// pageProgram is a broker and a stream for a program of events/PUBLISHING.md.
type pageProgram struct{ js jetstream.JetStream }

// publishingProgram writes the page's program in a language to file, for a broker of the test.
func publishingProgram(t *testing.T, language, file string) pageProgram {
	t.Helper()
	b := eventstest.Broker(t)
	js := eventstest.Connect(t, b)
	eventstest.Stream(t, js)
	stop, err := projector.ServeValidation(js.Conn(), nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(stop)
	program := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(page(t, "events/PUBLISHING.md"))
	if program == nil || !strings.Contains(program[1], "nats://127.0.0.1:4222") {
		t.Fatal("no program in events/PUBLISHING.md in", language)
	}
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(program[1], "nats://127.0.0.1:4222", b.ClientURL(), 1)), 0o600))
	return pageProgram{js}
}

// publishes wants cmd to publish one valid event, and to print its sequence.
func (p pageProgram) publishes(t *testing.T, cmd *exec.Cmd, want events.Type) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "1" {
		t.Fatalf("%v: %s, want the sequence 1", err, out)
	}
	stream, err := p.js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	m, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	e, err := events.DecodeMessage(m.Subject, m.Data)
	if err != nil || e.Type != want {
		t.Errorf("%+v: %v", e, err)
	}
}
