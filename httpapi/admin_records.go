package httpapi

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strconv"

	"example.org/registry/readmodel"
)

// Records is what the server holds, record by record, for registry verify.
type Records struct {
	Stream      string
	StreamEpoch string
	Inventory   *readmodel.Inventory
}

// RecordsHeader is the first line of /records. After it comes a line for each record: subject, space,
// hash in 32 hexadecimal digits.
type RecordsHeader struct {
	Stream      string `json:"stream"`
	StreamEpoch string `json:"streamEpoch"`
	Sequence    uint64 `json:"sequence"`
	Digest      string `json:"digest"`
	Records     int    `json:"records"`
	// Projection and Render are the versions of what is hashed: only the same can be compared.
	Projection uint32 `json:"projection"`
	Render     uint32 `json:"render"`
}

// records answers with every record at one sequence, which is at least the parameter sequence.
func (cfg *AdminConfig) records(w http.ResponseWriter, r *http.Request) {
	atLeast, err := strconv.ParseUint(r.FormValue("sequence"), 10, 64)
	if err != nil && r.FormValue("sequence") != "" {
		plain(w, http.StatusBadRequest, "sequence: must be a number")
		return
	}
	all, err := cfg.Records(r.Context(), atLeast)
	if err != nil {
		plain(w, failureStatus(err), err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := bufio.NewWriterSize(w, 64<<10)
	if err := all.write(out); err != nil {
		panic(http.ErrAbortHandler) // half of it must not look like all of it
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
		_, _ = out.WriteString(key.Subject() + " " + hash.String() + "\n")
	}
	return out.Flush()
}
