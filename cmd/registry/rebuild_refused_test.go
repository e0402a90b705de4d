package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRefusedRebuild: a rebuild that comes to nothing leaves the read model its one text index. (A second
// one would run beside it until the process ends, and keep the model alive for as long.)
func TestRefusedRebuild(t *testing.T) {
	t.Parallel()
	s := &stand{t: t, dir: t.TempDir(), env: []string{"REGISTRY_MIN_ENTRIES=1000"}}
	s.start()
	for range 3 {
		request, err := http.NewRequest(http.MethodPost, "http://"+s.Admin+"/rebuild", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Registry-Admin", "1")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusConflict {
			t.Fatalf("a rebuild with too few entries: %s", answer.Status)
		}
	}
	indexers := 0
	for end := time.Now().Add(patience); indexers == 0 && time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		_, stacks, err := ask("http://" + s.Admin + "/debug/pprof/goroutine?debug=2")
		if err != nil {
			t.Fatal(err)
		}
		indexers = strings.Count(string(stacks), "readmodel.(*Indexer).Run(")
	}
	if indexers != 1 {
		t.Errorf("%d text indexes are kept of one read model", indexers)
	}
}
