//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// command runs a command of the program against a replica. A file named FILE is in the soak's directory.
func (s *stage) command(ctx context.Context, r *replica, args ...string) (string, error) {
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "FILE", filepath.Join(s.dir, "archive"))
	}
	if where := args[0] + " " + args[min(1, len(args)-1)]; where != "snapshot verify" {
		if args[0] == "verify" || args[0] == "rejected" || where == "snapshot list" {
			args = append(args, "--nats-url=nats://"+s.broker.addr)
		}
		if args[0] != "rejected" && where != "snapshot list" {
			args = append(args, "--admin-addr="+strings.TrimPrefix(r.Admin, "http://"))
		}
	}
	out, err := exec.CommandContext(ctx, s.program, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("registry %s: %w: %s", strings.Join(args, " "), err, short(out))
	}
	return string(out), err
}

// short is the beginning of a long output.
func short(out []byte) string {
	const most = 1000
	text := strings.TrimSpace(string(out))
	if len(text) > most {
		text = text[:most] + " …"
	}
	return text
}

// commands are what operators do at any time.
func commands() [][]string {
	return [][]string{{"rebuild", "--yes"}, {"snapshot", "create"}, {"snapshot", "create", "--output=FILE"}, {"snapshot", "verify", "FILE"},
		{"snapshot", "list"}, {"export"}, {"verify"}, {"rejected", "list"}, {"ready"}}
}

// operate gives commands until ctx ends. While something is broken they may fail, but only in the way that the
// contract says: with status 1. Some are interrupted.
func (s *stage) operate(ctx context.Context) error {
	for pause(ctx, between(s.operatorRNG, 500*time.Millisecond, 4*time.Second)) {
		all := commands()
		if err := s.tolerant(ctx, all[s.operatorRNG.IntN(len(all))]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) tolerant(ctx context.Context, args []string) error {
	name := strings.TrimSuffix(strings.Join(args[:min(2, len(args))], " "), " --yes")
	limited, cancel := context.WithTimeout(ctx, between(s.operatorRNG, 100*time.Millisecond, 15*time.Second))
	defer cancel()
	_, err := s.command(limited, s.living, args...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		s.report.count(name)
	case limited.Err() != nil:
		s.report.count("commands cut short")
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		s.report.count("commands refused")
	default:
		s.report.fail("%v", err)
	}
	return s.tidy()
}

// tidy deletes replaced stores, as an operator does.
func (s *stage) tidy() error {
	files, err := filepath.Glob(filepath.Join(s.living.data, "registry.db.replaced-*"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

var sequenceOf = regexp.MustCompile(`(?m)^(\d+)  `)

// rejected sees to the rejected events: they are listed, the last is tried again (and rejected again, or refused
// where something newer is on its subject), and the copies are erased.
func (s *stage) rejected(ctx context.Context, rng *rand.Rand) error {
	list, err := s.command(ctx, s.living, "rejected", "list")
	if err != nil {
		return err
	}
	found := sequenceOf.FindAllStringSubmatch(list, -1)
	if len(found) == 0 {
		return nil
	}
	out, err := s.command(ctx, s.living, "rejected", "retry", found[rng.IntN(len(found))][1])
	switch {
	case err == nil:
		s.report.count("rejected retry")
	case strings.Contains(out, "not published again"):
		s.report.count("rejected retry refused")
	default:
		return err
	}
	if rng.IntN(3) == 0 {
		s.report.count("rejected purge")
		_, err = s.command(ctx, s.living, "rejected", "purge", "registry-rejected.>")
		return err
	}
	return nil
}
