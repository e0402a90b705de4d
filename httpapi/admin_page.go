package httpapi

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"time"
)

// The operators' page shows people what /projection shows machines. It is one document made here, with
// a style sheet and a short script of its own; it needs neither. Texts from outside (subjects,
// reasons, names) are escaped by html/template, and what cannot be seen in them is spelled out.

//go:embed admin
var adminFiles embed.FS

// The paths of the page and of what it loads.
const (
	pagePath   = "/"
	stylePath  = "/assets/admin.css"
	scriptPath = "/assets/admin.js"
)

const (
	// pagePolicy lets the page load its own style and script, and nothing else from anywhere.
	pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// askWithin bounds how long the page waits for what is not in this process's memory.
	askWithin = 2 * time.Second
	// shownRejected is how many rejected events the page shows.
	shownRejected = 20
)

// RejectedEvent is one in the stream of rejected events. Subject and Reason may hold anything.
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

// page is what the template shows.
type page struct {
	Title     string
	Now, As   time.Time // As: when the model was last known to be complete
	State     pageState
	P         Projection
	Chart     *chart
	Rejected  *rejectedPart  // nil: not known here
	Snapshots *snapshotsPart // nil: not known here
}

type rejectedPart struct {
	Events  []RejectedEvent
	Trouble string // why there are none, or empty
}

type snapshotsPart struct {
	Snapshots []SnapshotInfo
	Trouble   string
}

// pageRoutes adds the page and what it loads.
func (cfg *AdminConfig) pageRoutes(mux *http.ServeMux) {
	template := newPageTemplate()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { cfg.page(w, r, template) })
	mux.HandleFunc("GET "+stylePath, asset("admin/page.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET "+scriptPath, asset("admin/page.js", "text/javascript; charset=utf-8"))
}

// asset serves an embedded file. It is small and asked for by one operator: no cache keeps it.
func asset(name, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		body, err := adminFiles.ReadFile(name)
		if err != nil {
			plain(w, http.StatusInternalServerError, "internal error") // cannot be: it was embedded
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body) // fails only when the reader has gone
	}
}

func (cfg *AdminConfig) page(w http.ResponseWriter, r *http.Request, template *template.Template) {
	var body bytes.Buffer
	if err := template.Execute(&body, cfg.lookAround(r.Context())); err != nil {
		cfg.Logger.ErrorContext(r.Context(), "cannot show the operators' page", "error", err)
		plain(w, http.StatusInternalServerError, "internal error")
		return
	}
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(body.Bytes()) // fails only when the reader has gone
}

// lookAround gathers what the page shows. What the broker has to be asked for comes within askWithin,
// or the page says that it did not.
func (cfg *AdminConfig) lookAround(ctx context.Context) page {
	_, state, err := cfg.Health.look()
	v := page{Now: time.Now().UTC(), As: state.AsOf.UTC(), P: cfg.document()}
	v.State = judge(state, err, v.P)
	v.Title = v.State.Sentence
	if cfg.History != nil {
		v.Chart = cfg.History.chart()
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if cfg.Rejected != nil {
		found, err := cfg.Rejected(ctx, shownRejected)
		v.Rejected = &rejectedPart{found, trouble(err)}
	}
	if cfg.Snapshots != nil {
		found, err := cfg.Snapshots(ctx)
		v.Snapshots = &snapshotsPart{found, trouble(err)}
	}
	return v
}

func trouble(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// newPageTemplate fails for nobody: the template is embedded, and tested.
func newPageTemplate() *template.Template {
	return template.Must(template.New("page.html").Funcs(template.FuncMap{
		"iso":     stamp,
		"at":      func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"number":  number,
		"seconds": seconds,
		"rate":    func(f float64) string { return number(uint64(max(f, 0))) },
		"visible": visible,
	}).ParseFS(adminFiles, "admin/page.html"))
}
