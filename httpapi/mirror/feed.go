package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/body"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/reason"
)

const (
	pageLimit  = 1000             // changes requested at once
	answerTime = 30 * time.Second // in addition to the requested wait
	maxWait    = 25 * time.Second // for a change

	// maxAnswer bounds a page in bytes: a full page, or one with a single change. JSON writes some
	// bytes of a reason's HTML as six, and the rest of an entry is small.
	maxAnswer = readmodel.MaxFeedPage + 6*reason.MaxHTML + 64<<10
)

// feed requests a registry's changes.
type feed struct {
	base   string // without a trailing slash
	client *http.Client
}

// head is the position of a server's feed.
type head struct {
	Epoch      string      `json:"epoch"`
	Sequence   uint64      `json:"sequence"`
	LastChange uint64      `json:"lastChange"`
	Entries    body.Counts `json:"entries"`
	Digest     string      `json:"digest"`
}

// page is a page of changes after a sequence.
type page struct {
	Epoch    string   `json:"epoch"`
	Since    *uint64  `json:"since"`
	Until    uint64   `json:"until"`
	UpToDate bool     `json:"upToDate"`
	Changes  []change `json:"changes"`

	sequence uint64 // of the server
}

// change is the last state of one entry.
type change struct {
	Sequence   uint64          `json:"seq"`
	Op         string          `json:"op"` // set or remove
	List       events.List     `json:"list"`
	ReportedAt string          `json:"reportedAt"` // of set
	Entry      json.RawMessage `json:"entry"`      // of set
	EntryID    string          `json:"_id"`        // of remove; checkEntry fills it in for set
}

// errGone means that the feed has to be read from its beginning.
var errGone = errors.New("the feed begins anew")

// noAnswer is the reason why a response cannot be used.
type noAnswer struct {
	err     error
	foreign bool // it is not from a registry
	loading bool // it is from a registry that is not ready, or busy
}

func (e *noAnswer) Error() string { return e.err.Error() }
func (e *noAnswer) Unwrap() error { return e.err }

// head requests the feed's position, at a sequence of at least atLeast. It returns a *noAnswer, or
// the error of ctx.
func (f *feed) head(ctx context.Context, atLeast uint64) (h head, err error) {
	_, err = f.request(ctx, "/api/changes", atLeast, 0, &h, func() error {
		if h.Epoch == "" || len(h.Digest) != 32 {
			return errors.New("no feed")
		}
		return nil
	})
	if errors.Is(err, errGone) {
		err = &noAnswer{err: errors.New("it answers 410 Gone"), foreign: true}
	}
	return h, err
}

// page requests the changes after since, and waits up to wait for one. It returns errGone, a
// *noAnswer, or the error of ctx.
func (f *feed) page(ctx context.Context, epoch string, since uint64, wait time.Duration) (p page, err error) {
	path := fmt.Sprintf("/api/changes/%s?since=%d&limit=%d", url.PathEscape(epoch), since, pageLimit)
	if wait > 0 {
		path += fmt.Sprintf("&wait=%d", int(wait.Seconds()))
	}
	header, err := f.request(ctx, path, 0, wait, &p, func() error { return p.check(epoch, since) })
	if err == nil {
		p.sequence, _ = strconv.ParseUint(header.Get("Registry-Sequence"), 10, 64) // a proxy may have removed it
	}
	return p, err
}

// check returns an error if the page is not the requested one.
func (p *page) check(epoch string, since uint64) error {
	if p.Epoch != epoch || p.Since == nil || *p.Since != since || p.Until < since || p.Until == since && !p.UpToDate {
		return errors.New("another page than was asked for")
	}
	last := since
	for i := range p.Changes {
		c := &p.Changes[i]
		if _, known := c.List.Index(); !known || c.Sequence <= last || c.Sequence > p.Until {
			return errors.New("a change that cannot be")
		}
		last = c.Sequence
		switch c.Op {
		case "set":
			if err := c.checkEntry(); err != nil {
				return err
			}
		case "remove":
			if !events.IsID(c.EntryID) {
				return errNoID
			}
		default:
			return errors.New("neither set nor remove")
		}
	}
	return nil
}

// checkEntry rejects an entry that no server sends, and fills in its id.
func (c *change) checkEntry() error {
	var entry struct {
		EntryID string `json:"_id"`
	}
	if err := json.Unmarshal(c.Entry, &entry); err != nil || c.ReportedAt == "" || bytes.ContainsAny(c.Entry, "\r\n") {
		return errors.New("an entry that cannot be")
	}
	if c.EntryID = entry.EntryID; !events.IsID(c.EntryID) {
		return errNoID
	}
	return nil
}

var errNoID = errors.New("an entry without an id")

// SpeaksNoHTTP reports whether err is about bytes that are not HTTP. net/http has no error value
// for it, only two texts: for bytes after the request, and for bytes before it, such as a broker's.
func SpeaksNoHTTP(err error) bool {
	text := err.Error()
	return strings.Contains(text, "malformed HTTP") || strings.Contains(text, "readLoopPeekFailLocked: %!w(<nil>)")
}

// request sends a request, reads the response into v and checks it. If the response has to be at least
// as new as a sequence, caches are bypassed.
func (f *feed) request(ctx context.Context, path string, atLeast uint64, wait time.Duration, v any, check func() error) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime+wait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base+path, nil)
	if err != nil {
		return nil, err
	}
	if atLeast > 0 {
		request.Header.Set("Registry-Min-Sequence", strconv.FormatUint(atLeast, 10))
	}
	answer, err := f.client.Do(request)
	if err != nil && SpeaksNoHTTP(err) {
		return nil, &noAnswer{err: errors.New("it speaks no HTTP"), foreign: true}
	}
	if err != nil {
		return nil, &noAnswer{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, &noAnswer{err: err}
	}
	if answer.StatusCode != http.StatusOK {
		return nil, refusal(answer, text)
	}
	if err := json.Unmarshal(text, v); err != nil || len(text) > maxAnswer {
		return nil, &noAnswer{err: errors.New("it answers something else"), foreign: true}
	}
	if err := check(); err != nil {
		return nil, &noAnswer{err: fmt.Errorf("it answers something else: %w", err), foreign: true}
	}
	return answer.Header, nil
}

// refusal returns the error of a response that is not 200.
func refusal(answer *http.Response, text []byte) error {
	var said struct{ Error string }
	ofRegistry := json.Unmarshal(text, &said) == nil && said.Error != ""
	e := &noAnswer{err: errors.New("it answers " + answer.Status)}
	switch code := answer.StatusCode; {
	case code == http.StatusGone && ofRegistry:
		return errGone
	case code == http.StatusTooManyRequests || code >= 500:
		e.loading = ofRegistry
	default:
		e.foreign = true
	}
	return e
}
