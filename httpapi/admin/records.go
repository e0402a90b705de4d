package admin

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strconv"

	"example.org/registry/readmodel"
)

// Records is the server's content, record by record, for registry verify.
type Records struct {
	Stream    string
	Epoch     string
	Inventory *readmodel.Inventory
}

// RecordsHeader is the first line of /records. A line for each record follows: its name
// (readmodel.Inventory.All), a space, and its hash in 32 hexadecimal digits.
type RecordsHeader struct {
	Stream   string `json:"stream"`
	Epoch    string `json:"epoch"`
	Sequence uint64 `json:"sequence"`
	Digest   string `json:"digest"`
	Records  int    `json:"records"`
	// Projection and Render are the versions of the hashed data. Hashes of different versions are
	// not comparable.
	Projection uint32 `json:"projection"`
	Render     uint32 `json:"render"`
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
		Stream: a.Stream, Epoch: a.Epoch, Sequence: inv.Sequence, Digest: inv.Digest.String(), Records: inv.Len(),
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

	w = withoutDeadline(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := write(w); err != nil {
		l.Logger.WarnContext(r.Context(), "sending tombstones failed", "error", err)
		panic(http.ErrAbortHandler) // a partial response must not look complete
	}
}
