package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"example.org/registry/readmodel/terms"
)

// version and commit are set by a release build: go build -ldflags "-X main.version=v1.2.3 -X
// main.commit=0123abcd". Without them, the version that the Go command records has the commit in it.
var version, commit string

// versionCmd prints the versions that this program was built from.
type versionCmd struct{}

// Run prints one line for the program, one for each key dependency and one for the dictionary.
func (versionCmd) Run(p *process) error {
	text := fmt.Sprintf("registry %s %s %s/%s\n", programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	text += fmt.Sprintf("commit %s\n", cmp.Or(commit, "unknown"))
	for _, dep := range readBuildInfo().Deps {
		if slices.Contains(keyDependencies, dep.Path) {
			text += fmt.Sprintf("%s %s\n", dep.Path, dep.Version)
		}
	}
	_, err := fmt.Fprintf(p.stdout, "%s%s\n", text, terms.New().Dictionary())
	return err
}

// programVersion returns the version of the release, or else the one that the Go command recorded.
func programVersion() string { return cmp.Or(version, readBuildInfo().Main.Version, "(devel)") }

// readBuildInfo returns what the Go command recorded in the program. It is empty in a build without modules.
func readBuildInfo() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{}
}

// keyDependencies are the dependencies whose versions matter most to an operator.
var keyDependencies = []string{
	"github.com/blevesearch/bleve/v2",
	"github.com/gin-gonic/gin",
	"github.com/nats-io/nats-server/v2",
	"github.com/nats-io/nats.go",
	"github.com/yuin/goldmark",
	"go.etcd.io/bbolt",
	"golang.org/x/text",
}
