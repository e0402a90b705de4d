package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"

	"example.org/registry/readmodel/terms"
)

// version and commit are set by a release build: go build -ldflags "-X main.version=v1.2.3 -X
// main.commit=0123abcd".
var version, commit string

// versionCmd prints what this program was built from.
type versionCmd struct{}

// Run prints one line for the program, one for its commit, one for each key dependency and one for
// the dictionary.
func (versionCmd) Run(p *process) error {
	info, _ := debug.ReadBuildInfo() // nil only for a binary built without modules
	if err := printVersion(p.stdout, info); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.stdout, terms.New().Dictionary())
	return err
}

func printVersion(w io.Writer, info *debug.BuildInfo) error {
	_, err := fmt.Fprintf(w, "registry %s %s %s/%s\n", programVersion(info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "commit %s\n", programCommit(info)); err != nil || info == nil {
		return err
	}
	for _, dep := range info.Deps {
		if !slices.Contains(keyDependencies(), dep.Path) {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s %s\n", dep.Path, dep.Version); err != nil {
			return err
		}
	}
	return nil
}

// programVersion returns the release's own number, or else what the Go command recorded.
func programVersion(info *debug.BuildInfo) string {
	switch {
	case version != "":
		return version
	case info != nil && info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return "(devel)"
}

// programCommit returns the release's own commit, or else what the Go command recorded. A build
// without version control, such as by go run, has none.
func programCommit(info *debug.BuildInfo) string {
	if commit != "" {
		return commit
	}
	stamp := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			stamp[s.Key] = s.Value
		}
	}
	switch {
	case stamp["vcs.revision"] == "":
		return "unknown"
	case stamp["vcs.modified"] == "true":
		return stamp["vcs.revision"] + " with changes"
	}
	return stamp["vcs.revision"]
}

// keyDependencies returns the dependencies whose version matters most to an operator: the broker
// and its client, the store, the index of ranked search, the router, and the libraries that render
// and fold texts.
func keyDependencies() []string {
	return []string{
		"github.com/blevesearch/bleve/v2",
		"github.com/gin-gonic/gin",
		"github.com/nats-io/nats-server/v2",
		"github.com/nats-io/nats.go",
		"github.com/yuin/goldmark",
		"go.etcd.io/bbolt",
		"golang.org/x/text",
	}
}
