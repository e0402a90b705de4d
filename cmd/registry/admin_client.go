package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
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
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the server: %w; start it (registry serve) or correct --admin-addr", err)
	}
	if answer.StatusCode/100 == 2 {
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
	if f.AdminTokenFile != "" {
		token, err := os.ReadFile(f.AdminTokenFile)
		if err != nil {
			return nil, fmt.Errorf("--admin-token-file: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return request, nil
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
