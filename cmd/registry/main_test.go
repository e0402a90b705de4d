package main

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"example.org/registry/events/eventstest"
)

// TestMain lets the test binary be the program itself when it is started as "registry", and
// looks for goroutines left behind at the end.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"registry": main})
}

type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	_ = flag.Set("test.parallel", "6") // the tests wait for servers, disks and signals more than they compute; -parallel overrides it
	status := l.m.Run()
	if err := goleak.Find(eventstest.Leaks()...); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}
