package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

// RebuildOptions are the permissions that an operator gives a rebuild.
type RebuildOptions struct {
	// Yes accepts that a list loses more than a tenth of its entries, and that a memory limit looks too
	// low.
	Yes bool `json:"yes"`
}

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Before  ModelState `json:"before"`
	After   ModelState `json:"after"`
	Events  uint64     `json:"events"` // read from the stream
	Seconds float64    `json:"seconds"`
	// Joined counts the states of the replaced model that the new one has from it, since the stream
	// lacks them.
	Joined int `json:"joined"`
	// Aside is the name that the replaced store got in the data directory.
	Aside string `json:"aside"`
}

// ModelState summarizes a read model.
type ModelState struct {
	StreamEpoch string      `json:"streamEpoch"`
	Checkpoint  uint64      `json:"checkpoint"`
	Digest      string      `json:"digest"` // hexadecimal
	Entries     body.Counts `json:"entries"`
}

// Records is the server's content, record by record, for registry verify.
type Records struct {
	Stream      string
	StreamEpoch string
	Inventory   *readmodel.Inventory
}

// RecordsHeader is the first line of /records. A line for each record follows: its name
// (readmodel.Inventory.All), a space, and its hash in 32 hexadecimal digits.
type RecordsHeader struct {
	Stream      string `json:"stream"`
	StreamEpoch string `json:"streamEpoch"`
	Sequence    uint64 `json:"sequence"`
	Digest      string `json:"digest"`
	Records     int    `json:"records"`
	// Projection and Render are the versions of the hashed data. Hashes of different versions are
	// not comparable.
	Projection uint32 `json:"projection"`
	Render     uint32 `json:"render"`
}

// Archives makes snapshots and exports of the running server. Any goroutine may call its methods.
// Errors are reported like those of Config.Rebuild.
type Archives interface {
	// Create puts a snapshot at the checkpoint into the object store. The result is sent as JSON.
	Create(ctx context.Context) (any, error)
	// Archive makes a snapshot of size bytes to be read once. The caller closes it.
	Archive(ctx context.Context) (archive io.ReadCloser, size int64, err error)
	// Export writes the whole content to w as events, one a line. It calls begin before the first
	// byte, once it knows that it can export.
	Export(ctx context.Context, w io.Writer, begin func()) error
}

// Refused is an error that says why the server refuses a command, and the remedy. It is sent with
// 409.
type Refused string

func (r Refused) Error() string { return string(r) }

// Unavailable is an error that says why the server cannot run a command now. It is sent with 503.
type Unavailable string

func (u Unavailable) Error() string { return string(u) }

// fail sends err with the status of its type. Operators see the text of every error.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if refused := Refused(""); errors.As(err, &refused) {
		status = http.StatusConflict
	} else if unavailable := Unavailable(""); errors.As(err, &unavailable) {
		status = http.StatusServiceUnavailable
	}
	plain(w, status, err.Error())
}

// rebuild responds once the rebuild is done. If the client disconnects, the rebuild ends and the
// old model stays.
func (l *listener) rebuild(w http.ResponseWriter, r *http.Request) {
	options, err := rebuildOptions(r)
	if err != nil {
		plain(w, http.StatusBadRequest, err.Error())
		return
	}
	w, r, done := withoutDeadline(w, r)
	defer done()
	rebuilt, err := l.Rebuild(r.Context(), options)
	if err != nil {
		fail(w, err)
		return
	}
	l.sendJSON(w, r, http.StatusOK, rebuilt)
}

// rebuildOptions reads the options from the body, and from the query, which wins.
func rebuildOptions(r *http.Request) (o RebuildOptions, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return o, errors.New("body: " + err.Error())
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &o); err != nil {
			return o, errors.New(`body: must be JSON like {"yes":true}`)
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return o, errors.New("query: " + err.Error())
	}
	if query.Has("yes") {
		if o.Yes, err = strconv.ParseBool(query.Get("yes")); err != nil {
			return o, errors.New("yes: must be true or false")
		}
	}
	return o, nil
}

// records sends every record at one sequence, which is at least the parameter sequence.
func (l *listener) records(w http.ResponseWriter, r *http.Request) {
	atLeast, err := strconv.ParseUint(r.FormValue("sequence"), 10, 64)
	if err != nil && r.FormValue("sequence") != "" {
		plain(w, http.StatusBadRequest, "sequence: must be a number")
		return
	}
	all, err := l.Records(r.Context(), atLeast)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := bufio.NewWriterSize(w, 64<<10)
	if err := all.write(out); err != nil {
		panic(http.ErrAbortHandler) // a partial response must not look complete
	}
}

func (a Records) write(out *bufio.Writer) error {
	inv := a.Inventory
	head, err := json.Marshal(RecordsHeader{
		Stream: a.Stream, StreamEpoch: a.StreamEpoch, Sequence: inv.Sequence, Digest: inv.Digest.String(), Records: inv.Len(),
		Projection: readmodel.ProjectionVersion, Render: readmodel.RenderVersion,
	})
	if err != nil {
		return err
	}
	_, _ = out.Write(append(head, '\n')) // the writer keeps its error for Flush
	for key, hash := range inv.All() {
		_, _ = out.WriteString(key + " " + hash.String() + "\n")
	}
	return out.Flush()
}

// tombstones sends every removal that is known, one a line.
func (l *listener) tombstones(w http.ResponseWriter, r *http.Request) {
	write, err := l.Tombstones()
	if err != nil {
		fail(w, err)
		return
	}
	w, r, done := withoutDeadline(w, r)
	defer done()
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := write(w); err != nil {
		l.Logger.WarnContext(r.Context(), "sending tombstones failed", "error", err)
		panic(http.ErrAbortHandler) // a partial response must not look complete
	}
}

// createSnapshot sends 201 and the description of the snapshot in the object store. With the
// parameter output it sends 200 and the archive itself, which is stored nowhere else.
func (l *listener) createSnapshot(w http.ResponseWriter, r *http.Request) {
	w, r, done := withoutDeadline(w, r)
	defer done()
	if r.URL.Query().Has("output") {
		l.sendArchive(w, r)
		return
	}
	made, err := l.Archives.Create(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	l.sendJSON(w, r, http.StatusCreated, made)
}

// sendArchive sets the length first, so that a client notices a truncated archive.
func (l *listener) sendArchive(w http.ResponseWriter, r *http.Request) {
	archive, size, err := l.Archives.Archive(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	defer archive.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	if _, err := io.Copy(w, archive); err != nil {
		l.Logger.WarnContext(r.Context(), "sending a snapshot failed", "error", err)
	}
}

// export sends events, one a line. After the first one, a failure closes the connection, so that a
// partial export never looks complete.
func (l *listener) export(w http.ResponseWriter, r *http.Request) {
	w, r, done := withoutDeadline(w, r)
	defer done()
	began := false
	err := l.Archives.Export(r.Context(), w, func() {
		began = true
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(http.StatusOK)
	})
	switch {
	case err == nil:
	case !began:
		fail(w, err)
	default:
		l.Logger.WarnContext(r.Context(), "sending an export failed", "error", err)
		panic(http.ErrAbortHandler)
	}
}

// writeTimeout is how long a client may take to receive each piece of a long response.
const writeTimeout = time.Minute

// withoutDeadline removes the time limit of a request. Its client must keep receiving: each write
// has a limit of its own. The context ends when the client closes its side of the connection, which
// is all that is seen of one that hangs up until the next write.
func withoutDeadline(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, context.CancelFunc) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})  // a recorder in a test has none
	_ = control.SetWriteDeadline(time.Time{}) // the same
	ctx, cancel := context.WithCancel(r.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-wire.ConnOf(r).InputEnded():
			cancel()
		case <-ctx.Done():
		}
	}()
	return patientWriter{w, control}, r.WithContext(ctx), func() { cancel(); <-watched }
}

type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p patientWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	return p.ResponseWriter.Write(b)
}
