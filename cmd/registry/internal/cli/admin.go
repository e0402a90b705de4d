package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// AdminFlags are the flags for reaching the running server.
type AdminFlags struct {
	AdminAddr      Address `default:"127.0.0.1:8081" help:"Operators' listener of the running server." group:"Server"`
	AdminTokenFile string  `placeholder:"FILE" help:"Its bearer token, if it has one." group:"Server"`
}

// answerWithin bounds the wait until an answer begins. No command needs that long. Without a bound, a backup
// would wait forever for a server that hangs.
const answerWithin = time.Hour

// Ask sends a request to the operators' listener and returns the body of its response, which the
// caller closes. A response that is not 2xx is an error with its text.
func (f AdminFlags) Ask(ctx context.Context, method, path string) (io.ReadCloser, error) {
	request, err := f.newRequest(ctx, method, path)
	if err != nil {
		return nil, err
	}

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: answerWithin}}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the server: %w; start it (registry serve) or correct --admin-addr", err)
	}
	if answer.StatusCode/100 == 2 {
		return answer.Body, nil
	}
	defer answer.Body.Close()

	// The operators' listener knows the paths of all commands, and explains errors in plain text. Any other
	// answer means that the address is another program's.
	isPlain := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain")
	lacksPath := answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusMethodNotAllowed
	if lacksPath || !isPlain {
		return nil, fmt.Errorf("%s is not the operators' listener of a server: it answers %s; correct --admin-addr", f.AdminAddr, answer.Status)
	}

	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10)) // part of a reason is better than none
	reason := strings.TrimSpace(string(text))
	if answer.StatusCode == http.StatusUnauthorized {
		reason += "; name its file with --admin-token-file"
	}
	return nil, errors.New(reason)
}

// AskJSON is Ask for a JSON response, which it decodes into v.
func (f AdminFlags) AskJSON(ctx context.Context, method, path string, v any) error {
	body, err := f.Ask(ctx, method, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return fmt.Errorf("answer of the server: %w", err)
	}
	return nil
}

func (f AdminFlags) newRequest(ctx context.Context, method, path string) (*http.Request, error) {
	host, port, _ := net.SplitHostPort(string(f.AdminAddr))
	if port == "0" {
		return nil, Usagef("--admin-addr: port 0 is no address to ask")
	}

	// A server that listens on all interfaces is reached through loopback.
	if slices.Contains([]string{"", "0.0.0.0", "::"}, host) {
		host = "127.0.0.1"
	}

	request, err := http.NewRequestWithContext(ctx, method, "http://"+net.JoinHostPort(host, port)+path, nil)
	if err != nil {
		return nil, err
	}

	if method == http.MethodPost {
		request.Header.Set("Registry-Admin", "1") // shows that no web page sends the request
	}
	token, err := AdminToken(f.AdminTokenFile)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, err
}

// AdminToken reads the token of the operators' listener, for the server and the commands. A token of
// fewer than 16 characters can be guessed.
func AdminToken(file string) (string, error) { return ReadToken("--admin-token-file", file, 16) }

// ReadToken reads a token that a header can carry, of at least minimum characters. It returns "" if
// file is empty.
func ReadToken(flag, file string, minimum int) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", FileError(flag, file, err)
	}

	token := strings.TrimSpace(string(text))
	unprintable := strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
	if len(token) < minimum || unprintable {
		return "", fmt.Errorf("%s: the file must hold a token of at least %d printable ASCII characters without spaces", flag, minimum)
	}
	return token, nil
}
