package snapshots

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel"
)

// child is what the test binary does as a child process.
func child(job, path string) int {
	switch job {
	case "restore":
		return restoreForEver(path)
	case "begin":
		return beginFull(path)
	}
	s, m, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	defer s.Close()
	switch job {
	case "save":
		return saveForEver(s, m)
	case "commit":
		return commitOnce(s, m)
	case "full":
		return saveUntilFull(s, m)
	}
	return 2
}

// saveForEver saves batch after batch and says after each which checkpoint is on disk.
func saveForEver(s *Store, m *readmodel.Model) int {
	data := sample(200)
	for n := 0; ; n = (n + 17) % (len(data) - 17) {
		if err := s.Save(feed(m, data[n:n+17]...)); err != nil {
			fmt.Println("save:", err)
			return 1
		}
		fmt.Println(m.View().Sequence(), m.Digest())
	}
}

func childCommand(t *testing.T, job, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SNAPSHOTS_CHILD="+job, "SNAPSHOTS_PATH="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// Promises 3 and 4 after kill -9 at any moment: the store is never damaged, never older than what was
// reported saved.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	for round := range 8 {
		cmd := childCommand(t, "save", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var last uint64
		var digest string
		lines := bufio.NewScanner(out)
		for n := 0; n < 3+7*round && lines.Scan(); n++ {
			if _, err := fmt.Sscan(lines.Text(), &last, &digest); err != nil {
				t.Errorf("child says %q", lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it saved before it died
			if _, err := fmt.Sscan(lines.Text(), &last, &digest); err != nil {
				break // a line cut short
			}
		}
		_ = cmd.Wait() // killed: an error by design
		s, m := mustOpen(t, path)
		if got := s.Checkpoint().Sequence; got < last || m.View().Sequence() != got {
			t.Errorf("checkpoint %d after a kill, %d was reported", got, last)
		}
		if s.Checkpoint().Sequence == last && m.Digest().String() != digest {
			t.Errorf("digest %s at %d, reported %s", m.Digest(), last, digest)
		}
		if a := asides(t, path); len(a) != 0 {
			t.Fatalf("set aside after a kill: %v", a)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that is full and then has room again: Save fails, nothing is lost, Save works.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	out, err := childCommand(t, "full", path).Output()
	if err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	var last uint64
	var digest string
	if _, err := fmt.Sscanf(lastLine(out), "healed %d %s", &last, &digest); err != nil {
		t.Fatalf("child says %q", out)
	}
	s, m := mustOpen(t, path)
	if s.Checkpoint().Sequence != last || m.Digest().String() != digest {
		t.Errorf("loaded %d %s, saved %d %s", s.Checkpoint().Sequence, m.Digest(), last, digest)
	}
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// A Save that is reported failed was lost or was kept all the same; either way the next one, given
// everything again, leaves the right state (promise 4).
func TestFailedSave(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept=%v", kept), func(t *testing.T) {
			s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
			data := sample(60)
			if err := s.Save(feed(m, data[:40]...)); err != nil {
				t.Fatal(err)
			}
			before := s.saved
			second := feed(m, data[40:60]...)
			failSave(t, s, second, before, kept)
			if err := s.Probe(); err != nil {
				t.Errorf("Probe does not heal: %v", err)
			}
			third := feed(m, data[60:]...)
			third.Records = append(latestOnly(second, third), third.Records...)
			if err := s.Save(third); err != nil {
				t.Fatal(err)
			}
			_, loaded := mustOpen(t, copyOf(t, s))
			if content(t, loaded.View()) != content(t, m.View()) {
				t.Error("loaded content differs from the model")
			}
		})
	}
}

// failSave makes the store believe that saving c failed.
func failSave(t *testing.T, s *Store, c readmodel.Commit, before meta, kept bool) {
	t.Helper()
	if !kept {
		s.db.MaxSize = 1 // the next page that it needs is refused
		if err := s.Save(c); err == nil {
			t.Fatal("a Save without room succeeded")
		}
		if s.Checkpoint().Sequence != before.Checkpoint.Sequence {
			t.Error("a failed Save moved the checkpoint")
		}
		return
	}
	if err := s.Save(c); err != nil {
		t.Fatal(err)
	}
	attempt := s.saved
	s.saved, s.attempt = before, &attempt
	s.setFailed(errors.New("fsync: input/output error"))
}

// latestOnly is those records of a that b does not replace.
func latestOnly(a, b readmodel.Commit) []readmodel.Record {
	in := map[readmodel.Key]bool{}
	for _, r := range b.Records {
		in[r.Key] = true
	}
	var out []readmodel.Record
	for _, r := range a.Records {
		if !in[r.Key] {
			out = append(out, r)
		}
	}
	return out
}

// A store that somebody else replaced after a failed write is not written to.
func TestReplacedAfterFailure(t *testing.T) {
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	if err := s.Save(feed(m, sample(10)...)); err != nil {
		t.Fatal(err)
	}
	failSave(t, s, feed(m, sample(20)...), s.saved, true)
	other := newMeta()
	if err := s.db.Update(func(tx *bolt.Tx) error { return other.write(tx, s.sum) }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Save(readmodel.Commit{Checkpoint: at(1000), Digest: m.Digest()}); err == nil {
			t.Error("saved over a state that is neither the old nor the attempted one")
		}
	}
}

func TestProbe(t *testing.T) {
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	if err := s.Save(feed(m, sample(10)...)); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(); err != nil {
		t.Error(err)
	}
	s.mu.Lock() // a transaction is at work
	if err := s.Probe(); err != nil {
		t.Error(err)
	}
	s.mu.Unlock()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(); !errors.Is(err, errClosed) {
		t.Errorf("Probe of a closed store: %v", err)
	}
}
