//go:build unix

package main

import (
	"context"
	"io"
	"net/http"
	"time"
)

// answer is what came back, unpacked by nobody.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// askWithin bounds a request. It is longer than a replica is ever stopped for.
const askWithin = 30 * time.Second

// newClient is a client whose connections are its own.
func newClient(keepAlive bool) *http.Client {
	return &http.Client{Timeout: askWithin, Transport: &http.Transport{DisableKeepAlives: !keepAlive, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ask asks once, on a connection that ends with the answer.
func ask(ctx context.Context, url string, header http.Header) (answer, error) {
	return askBy(ctx, newClient(false), url, header)
}

func askBy(ctx context.Context, client *http.Client, url string, header http.Header) (a answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return a, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.status, a.header = response.StatusCode, response.Header
	a.body, err = io.ReadAll(response.Body)
	return a, err
}
