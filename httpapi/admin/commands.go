package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"example.org/registry/httpapi"
)

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Before  ModelState `json:"before"`
	After   ModelState `json:"after"`
	Events  uint64     `json:"events"` // read from the stream
	Seconds float64    `json:"seconds"`
}

// ModelState summarizes a read model.
type ModelState struct {
	Epoch      string         `json:"epoch"`
	Checkpoint uint64         `json:"checkpoint"`
	Digest     string         `json:"digest"` // hexadecimal
	Entries    httpapi.Counts `json:"entries"`
}

// Snapshots makes snapshots and exports of the running server. Any goroutine may call its methods. Errors are sent as for
// Config.Rebuild.
type Snapshots interface {
	// Create puts a snapshot at the checkpoint into the object store. The result is sent as JSON.
	Create(ctx context.Context) (any, error)
	// Export writes all latest states to w as events, one a line. It calls begin before the first byte. If it fails before
	// that, the client gets the status of the error.
	Export(ctx context.Context, w io.Writer, begin func()) error
}

// Refused is an error that says why the server refuses a command, and the remedy. It is sent with 409.
type Refused string

func (r Refused) Error() string { return string(r) }

// Unavailable is an error that says why the server cannot run a command now. It is sent with 503.
type Unavailable string

func (u Unavailable) Error() string { return string(u) }

// fail sends err with the status of its type. Operators see the text of every error.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if _, refused := errors.AsType[Refused](err); refused {
		status = http.StatusConflict
	} else if _, unavailable := errors.AsType[Unavailable](err); unavailable {
		status = http.StatusServiceUnavailable
	}
	sendLine(w, status, err.Error())
}

// rebuild responds once the rebuild is done. If the client disconnects, the rebuild ends and the old model stays.
func (l *listener) rebuild(w http.ResponseWriter, r *http.Request) {
	extendDeadline(w)
	rebuilt, err := l.Rebuild(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	sendJSON(w, http.StatusOK, rebuilt)
}

// createSnapshot sends 201 and the description of the snapshot in the object store.
func (l *listener) createSnapshot(w http.ResponseWriter, r *http.Request) {
	extendDeadline(w)
	snapshot, err := l.Snapshots.Create(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	sendJSON(w, http.StatusCreated, snapshot)
}

// sendExport sends events, one a line. If it fails after the headers, it breaks the connection.
func (l *listener) sendExport(w http.ResponseWriter, r *http.Request) {
	extendDeadline(w)
	began := false
	err := l.Snapshots.Export(r.Context(), w, func() {
		began = true
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(http.StatusOK)
	})

	if err == nil {
		return
	}
	if !began {
		fail(w, err)
		return
	}

	// The client has received a part already. The panic breaks the connection, so that the part does not look complete.
	l.Logger.WarnContext(r.Context(), "sending an export failed", "error", err)
	panic(http.ErrAbortHandler)
}

// commandTimeout is longer than any command takes. It ends exports to clients that have stopped reading.
const commandTimeout = 24 * time.Hour

// extendDeadline replaces the server's time limit of a response.
func extendDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(commandTimeout)) // fails only for a recorder in a test
}
