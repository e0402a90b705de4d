package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// adminFlags say how a command reaches the running server.
type adminFlags struct {
	AdminAddr      address `default:"127.0.0.1:8081" help:"Operators' listener of the running server." group:"Server"`
	AdminTokenFile string  `placeholder:"FILE" help:"Its bearer token, where it has one." group:"Server"`
}

// ask makes a request to the operators' listener. An answer that is not 2xx is an error with its text. The
// caller closes the body. It has no time limit but ctx.
func (f adminFlags) ask(ctx context.Context, method, path string) (io.ReadCloser, error) {
	request, err := f.request(ctx, method, path)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialToAsk}}
	answer, err := client.Do(request)
	switch {
	case err != nil && strings.Contains(err.Error(), "malformed HTTP"): // net/http has no other word for it
		return nil, f.foreign("it speaks no HTTP")
	case err != nil:
		return nil, fmt.Errorf("cannot reach the server: %w; start it (registry serve) or correct --admin-addr", err)
	case !ours(answer):
		answer.Body.Close()
		return nil, f.foreign("it answers " + answer.Status)
	case answer.StatusCode/100 == 2:
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10)) // a cut reason is still one
	reason := strings.TrimSpace(string(text))
	if answer.StatusCode == http.StatusUnauthorized {
		reason += "; name its file with --admin-token-file"
	}
	return nil, errors.New(reason)
}

// ours says whether an answer can be of the operators' listener: it has all that is asked for, shows no page, and says in
// plain text what is wrong.
func ours(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case answer.StatusCode/100 == 2:
		return kind != "text/html"
	case answer.StatusCode == http.StatusNotFound, answer.StatusCode == http.StatusMethodNotAllowed:
		return false
	}
	return err == nil && kind == "text/plain"
}

func (f adminFlags) foreign(why string) error {
	return fmt.Errorf("%s is not the operators' listener of a server: %s; correct --admin-addr", f.AdminAddr, why)
}

func (f adminFlags) request(ctx context.Context, method, path string) (*http.Request, error) {
	base, err := f.url()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		request.Header.Set("Registry-Admin", "1")
	}
	token, err := adminToken(f.AdminTokenFile)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, err
}

// url replaces "every interface" by the loopback one: that is where the server is, seen from here.
func (f adminFlags) url() (string, error) {
	host, port, _ := net.SplitHostPort(string(f.AdminAddr))
	if port == "0" {
		return "", usagef("--admin-addr: port 0 is no address to ask")
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
