package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"
)

// AdminFlags are the flags for reaching the running server.
type AdminFlags struct {
	AdminAddr      Address `default:"127.0.0.1:8081" help:"Operators' listener of the running server." group:"Server"`
	AdminTokenFile string  `placeholder:"FILE" help:"Its bearer token, if it has one." group:"Server"`
}

// Ask sends a request to the operators' listener and returns the body of its response, which the
// caller closes. A response that is not 2xx is an error with its text. Only ctx limits the time of a
// server that is alive.
func (f AdminFlags) Ask(ctx context.Context, method, path string) (io.ReadCloser, error) {
	request, err := f.request(ctx, method, path)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if err := f.alive(ctx, client); err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	switch {
	case err != nil && speaksNoHTTP(err):
		return nil, f.foreign("it speaks no HTTP")
	case err != nil:
		return nil, fmt.Errorf("cannot reach the server: %w; start it (registry serve) or correct --admin-addr", err)
	case !fromAdmin(answer):
		answer.Body.Close()
		return nil, f.foreign("it answers " + answer.Status)
	case answer.StatusCode/100 == 2:
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10)) // part of a reason is better than none
	reason := strings.TrimSpace(string(text))
	if answer.StatusCode == http.StatusUnauthorized {
		reason += "; name its file with --admin-token-file"
	}
	return nil, errors.New(reason)
}

// speaksNoHTTP reports whether err is about bytes that are not HTTP. net/http has no error value
// for it, only two texts: for bytes after the request, and for bytes before it, such as a broker's.
func speaksNoHTTP(err error) bool {
	text := err.Error()
	return strings.Contains(text, "malformed HTTP") || strings.Contains(text, "readLoopPeekFailLocked: %!w(<nil>)")
}

// aliveWithin bounds the time in which a server answers at all.
const aliveWithin = 10 * time.Second

// alive returns an error if something takes the connection and answers nothing. It leaves other errors
// to the request that follows.
func (f AdminFlags) alive(ctx context.Context, client *http.Client) error {
	bounded, cancel := context.WithTimeout(ctx, aliveWithin)
	defer cancel()
	request, err := f.request(bounded, http.MethodGet, "/livez")
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err == nil {
		return answer.Body.Close()
	}
	if bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%s does not answer within %s; see what is there, restart the server or correct --admin-addr", f.AdminAddr, aliveWithin)
	}
	return nil
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

// fromAdmin reports whether a response comes from the operators' listener and not from another
// server at its address. The listener knows all the commands' paths, sends them no pages and
// explains errors in plain text.
func fromAdmin(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case answer.StatusCode/100 == 2:
		return kind != "text/html"
	case answer.StatusCode == http.StatusNotFound, answer.StatusCode == http.StatusMethodNotAllowed:
		return false
	}
	return err == nil && kind == "text/plain"
}

func (f AdminFlags) foreign(why string) error {
	return fmt.Errorf("%s is not the operators' listener of a server: %s; correct --admin-addr", f.AdminAddr, why)
}

func (f AdminFlags) request(ctx context.Context, method, path string) (*http.Request, error) {
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
	token, err := AdminToken(f.AdminTokenFile)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, err
}

// url replaces the address of all interfaces by loopback, where this machine can reach the server.
func (f AdminFlags) url() (string, error) {
	host, port, _ := net.SplitHostPort(string(f.AdminAddr))
	if port == "0" {
		return "", Usagef("--admin-addr: port 0 is no address to ask")
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// minToken is the minimum length of an admin token in bytes. Shorter ones can be guessed.
const minToken = 16

// AdminToken reads the token of the operators' listener, for the server and the commands. It
// returns "" if file is empty.
func AdminToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := ReadFile(file, maxSecret)
	if err != nil {
		return "", Unreadable("--admin-token-file", file, err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken || !IsToken(token) {
		return "", errors.New("--admin-token-file: the file must hold at least 16 printable ASCII characters without spaces")
	}
	return token, nil
}

// maxSecret bounds the files with secrets and certificates.
const maxSecret = 1 << 20

// ReadFile reads a file that a flag names, of at most limit bytes. It waits for no pipe, and reads no
// device: one has no end.
func ReadFile(name string, limit int) ([]byte, error) {
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if mode := info.Mode(); !mode.IsRegular() && !mode.IsDir() { // reading a directory has an error of its own
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(text) > limit {
		err = fmt.Errorf("longer than %d bytes", limit)
	}
	return text, err
}

// IsToken reports whether text is printable ASCII without spaces, which a header can carry.
func IsToken(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
