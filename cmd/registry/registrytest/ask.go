//go:build unix

package registrytest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"example.org/registry/events/pause"
	"example.org/registry/httpapi/admin"
)

// Answer is an HTTP response, with its body as it was sent.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// newClient returns a client with connections of its own, which follows no redirects and unpacks
// nothing. A request may take 30 s, longer than any test pauses a server.
func newClient(keepAlive bool) *http.Client {
	return &http.Client{
		Timeout:       30 * time.Second,
		Transport:     &http.Transport{DisableKeepAlives: !keepAlive, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Ask sends one request, on a connection that ends with the response.
func Ask(ctx context.Context, url string, header http.Header) (Answer, error) {
	return askBy(ctx, newClient(false), url, header)
}

// askBy is Ask with the caller's client.
func askBy(ctx context.Context, client *http.Client, url string, header http.Header) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Answer{}, err
	}
	maps.Copy(request.Header, header)
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, body}, err
}

// readDocument reads a JSON document. Any status but 200 is an error.
func readDocument(ctx context.Context, client *http.Client, url string, into any) error {
	a, err := askBy(ctx, client, url, nil)
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("%s: %d %.200s", url, a.Status, a.Body)
	}
	return json.Unmarshal(a.Body, into)
}

// Projection returns the document at /projection.
func (s *Server) Projection(ctx context.Context) (p admin.Projection, err error) {
	err = readDocument(ctx, newClient(false), s.Admin+"/projection", &p)
	return p, err
}

// WaitSettled waits until the server has applied and saved everything up to a sequence, and reports no error.
func (s *Server) WaitSettled(ctx context.Context, sequence uint64) (p admin.Projection, err error) {
	if err := s.WaitReady(ctx); err != nil {
		return p, err
	}

	_, waitErr := Await(ctx, "the server has everything and nothing is wrong", func() bool {
		p, err = s.Projection(ctx)
		hasApplied := p.Checkpoint >= sequence && p.Lag == 0
		hasSaved := p.SnapshotSequence == p.Checkpoint
		return err == nil && hasApplied && hasSaved && p.LastError == nil
	})
	if waitErr != nil {
		return p, fmt.Errorf("%w: waited for %d, %+v, %v; its log ends:\n%s", waitErr, sequence, p, err, s.Tail())
	}
	return p, nil
}

// Await waits until a condition holds, at most Patience, and returns how long that took.
func Await(ctx context.Context, what string, holds func() bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()

	began := time.Now()
	if !pause.Until(ctx, 20*time.Millisecond, holds) {
		return 0, fmt.Errorf("never: %s", what)
	}
	return time.Since(began), nil
}
