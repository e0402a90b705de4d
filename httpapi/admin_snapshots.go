package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Archives makes snapshots and exports of the running server. Any goroutine may call its methods. Errors
// that are Refused or Unavailable are told as such.
type Archives interface {
	// Create puts a snapshot at the checkpoint into the object store. What it returns is told as JSON.
	Create(ctx context.Context) (any, error)
	// Archive makes one of so many bytes to be read once; the caller closes it.
	Archive(ctx context.Context) (archive io.ReadCloser, size int64, err error)
	// Export writes the whole content as events, one a line. It calls begin when it knows that it
	// can, before the first byte.
	Export(ctx context.Context, w io.Writer, begin func()) error
}

// takeWithin is how long an operator may take for each piece of a long answer.
const takeWithin = time.Minute

// unhurried lets a request last as long as it lasts, while each piece of the answer is taken in time.
func unhurried(w http.ResponseWriter) io.Writer {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})  // where there is none to set there is none
	_ = control.SetWriteDeadline(time.Time{}) // the same
	return unhurriedWriter{w, control}
}

type unhurriedWriter struct {
	w       io.Writer
	control *http.ResponseController
}

func (u unhurriedWriter) Write(b []byte) (int, error) {
	_ = u.control.SetWriteDeadline(time.Now().Add(takeWithin))
	return u.w.Write(b)
}

// createSnapshot answers 201 and what was put into the object store; with the parameter output, 200 and the
// archive itself, which goes nowhere else.
func (cfg *AdminConfig) createSnapshot(w http.ResponseWriter, r *http.Request) {
	out := unhurried(w)
	if r.URL.Query().Has("output") {
		cfg.sendArchive(w, out, r)
		return
	}
	made, err := cfg.Archives.Create(r.Context())
	if err != nil {
		plain(w, failureStatus(err), err.Error())
		return
	}
	body, err := json.Marshal(made)
	if err != nil {
		plain(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusCreated)
	_, _ = out.Write(append(body, '\n')) // fails only when the operator has gone
}

// sendArchive names the length first, so that an archive that is cut short on its way is known to be.
func (cfg *AdminConfig) sendArchive(w http.ResponseWriter, out io.Writer, r *http.Request) {
	archive, size, err := cfg.Archives.Archive(r.Context())
	if err != nil {
		plain(w, failureStatus(err), err.Error())
		return
	}
	defer archive.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	if _, err := io.Copy(out, archive); err != nil {
		cfg.Logger.WarnContext(r.Context(), "snapshot was not sent to its end", "error", err)
	}
}

// export sends events, one a line. What fails after the first cuts the connection, so that nobody
// takes a part for everything.
func (cfg *AdminConfig) export(w http.ResponseWriter, r *http.Request) {
	out := unhurried(w)
	began := false
	err := cfg.Archives.Export(r.Context(), out, func() {
		began = true
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(http.StatusOK)
	})
	switch {
	case err == nil:
	case !began:
		plain(w, failureStatus(err), err.Error())
	default:
		cfg.Logger.WarnContext(r.Context(), "export was not sent to its end", "error", err)
		panic(http.ErrAbortHandler)
	}
}
