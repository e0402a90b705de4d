package admin

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
	"unicode"

	"example.org/registry/httpapi"
	"example.org/registry/httpapi/body"
)

// The page shows people what /projection shows programs. It is rendered as one document, with the
// site's style sheet, one of its own and a short script, and works without them. html/template
// escapes the texts of events and of other services; visible spells out their invisible characters.

//go:embed page.html
var pageFiles embed.FS

//go:embed page.css
var pageStyle []byte

//go:embed page.js
var pageScript []byte

// The paths of the page and its assets.
const (
	pagePath   = "/"
	sitePath   = "/assets/site.css"
	stylePath  = "/assets/admin.css"
	scriptPath = "/assets/admin.js"
)

const (
	// pagePolicy lets the page load only its own style and script.
	pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// brokerTimeout bounds how long the page waits for data of the broker.
	brokerTimeout = 2 * time.Second
	// rejectedShown is how many rejected events the page shows.
	rejectedShown = 20
)

// RejectedEvent is an event in the stream of rejected events. Subject and Reason may hold anything.
type RejectedEvent struct {
	Sequence uint64 // in the event stream
	Time     time.Time
	Subject  string
	Reason   string
}

// SnapshotInfo is a snapshot in the object store.
type SnapshotInfo struct {
	Name     string
	Sequence uint64 // its checkpoint
	Made     time.Time
	Entries  uint64
	Bytes    uint64
}

// page is the data of the template.
type page struct {
	Title     string
	Now, AsOf time.Time // AsOf: when the model was last known to be complete
	State     pageState
	P         Projection
	Site      string // address; may be empty
	Charts    []chart
	Rejected  *rejectedSection  // nil to omit it
	Snapshots *snapshotsSection // nil to omit it
}

// Trouble is the reason why a section could not be read.
type (
	rejectedSection struct {
		Events  []RejectedEvent
		Trouble string
	}
	snapshotsSection struct {
		Snapshots []SnapshotInfo
		Trouble   string
	}
)

func (l *listener) page(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	if err := l.template.Execute(&body, l.newPage(r.Context())); err != nil {
		l.internalError(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(body.Bytes()) // fails only if the client has disconnected
}

// newPage gathers the data of the page. Data that the broker does not send in time is shown as
// missing.
func (l *listener) newPage(ctx context.Context) page {
	_, state, err := l.Health.View()
	v := page{Now: time.Now().UTC(), AsOf: state.AsOf.UTC(), Site: l.Site, P: l.document(err)}
	v.State = judge(state, err, v.P)
	v.Title = v.State.Sentence
	if l.History != nil {
		v.Charts = l.History.charts()
	}
	ctx, cancel := context.WithTimeout(ctx, brokerTimeout)
	defer cancel()
	if l.Rejected != nil {
		found, err := l.Rejected(ctx, rejectedShown)
		v.Rejected = &rejectedSection{found, trouble(err)}
	}
	if l.Snapshots != nil {
		found, err := l.Snapshots(ctx)
		v.Snapshots = &snapshotsSection{found, trouble(err)}
	}
	return v
}

func trouble(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// asset serves an embedded file. It is small and read by one operator, so no cache stores it.
func asset(body []byte, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body) // fails only if the client has disconnected
	}
}

// pageState summarizes the state: a sentence, its details, and the remedy. Level is good, warn or
// bad.
type pageState struct {
	Level, Sentence string
	Details         []string
	Advice          string
}

// lagShown is the lag in seconds from which the headline mentions it.
const lagShown = 5

// unfreeze is the advice for a frozen projector (httpapi/CONTRACT.md#readiness).
const unfreeze = "if the stream is only away, wait: applying resumes by itself once it is back. " +
	"If this server was pointed at a wrong stream, stop it and correct --nats-url, --stream or --data-dir. " +
	"If the stream was lost, run: registry recover. Until then nothing is lost and nothing is applied."

// judge returns the most important state for an operator. unready is the reason why nothing is
// served, or nil.
func judge(state httpapi.Readiness, unready error, p Projection) pageState {
	s := pageState{Level: "good", Sentence: "In order: lists and checks are answered, and nothing is missing."}
	if p.LastError != nil && *p.LastError != "" {
		s.Details = []string{*p.LastError}
	}
	switch {
	case state.Stopping:
		s.Level, s.Sentence = "warn", "Stopping: requests in progress are still answered."
	case state.Frozen && unready != nil:
		s.Level, s.Sentence, s.Advice = "bad", "Frozen, and lists and checks are answered with 503.", unfreeze
	case state.Frozen:
		s.Level, s.Sentence, s.Advice = "bad", "Frozen: the last good state is served, and nothing is applied.", unfreeze
	case unready != nil:
		s.Level, s.Sentence, s.Advice = "bad", "Lists and checks are answered with 503.",
			"if the server is catching up, wait; otherwise fix what is named here. /readyz says the same."
	case p.LastError != nil:
		s.Level, s.Sentence = "bad", "Lists and checks are answered, but something is wrong."
	case p.Rebuilding != nil:
		s.Level, s.Sentence = "warn", "Rebuilding: the current content is served meanwhile."
	case p.LagSeconds > lagShown:
		s.Level, s.Sentence = "warn", "Lists and checks are answered, but events are waiting to be applied."
	}
	return s
}

// newPageTemplate panics only if the embedded template is broken, which the tests rule out.
func newPageTemplate() *template.Template {
	return template.Must(template.New("page.html").Funcs(template.FuncMap{
		"iso":     body.Time,
		"at":      func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"clock":   func(t time.Time) string { return t.UTC().Format("15:04") },
		"number":  number,
		"seconds": seconds,
		"rate":    func(f float64) string { return number(uint64(max(f, 0))) },
		"visible": visible,
	}).ParseFS(pageFiles, "page.html"))
}

// number formats an integer with its digits in groups of three.
func number(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// seconds formats a duration in seconds for people.
func seconds(s float64) string {
	switch {
	case s < 10:
		return fmt.Sprintf("%.1f s", max(s, 0))
	case s < 120:
		return fmt.Sprintf("%.0f s", s)
	case s < 2*3600:
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.0f h", s/3600)
}

// visible spells out invisible characters: control characters, and those that change the direction
// of text or have no width.
func visible(text string) string {
	hidden := func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "[U+%04X]", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
