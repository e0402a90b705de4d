package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// RebuildOptions is what an operator lets a rebuild do (API contract, registry rebuild).
type RebuildOptions struct {
	// AcceptStream makes the stream of that name ours, whichever it is, and makes one when there is none.
	AcceptStream bool `json:"accept-stream"`
	// Yes accepts that a list loses more than a tenth, and a memory limit that looks too low.
	Yes bool `json:"yes"`
}

// Rebuilt is the outcome of a rebuild.
type Rebuilt struct {
	Before  ModelState `json:"before"`
	After   ModelState `json:"after"`
	Events  uint64     `json:"events"` // read from the stream
	Seconds float64    `json:"seconds"`
	// Aside is the name that the replaced store was given in the data directory.
	Aside string `json:"aside"`
	// SubjectsWithoutValidEvent are those whose state the stream has lost: the new model does not know it.
	SubjectsWithoutValidEvent []string `json:"subjectsWithoutValidEvent"`
}

// ModelState is what a read model holds.
type ModelState struct {
	StreamEpoch string  `json:"streamEpoch"`
	Checkpoint  uint64  `json:"checkpoint"`
	Digest      string  `json:"digest"` // hexadecimal
	Entries     Entries `json:"entries"`
}

// Refused is why the server will not do what an operator asked for, and what would help: 409.
type Refused string

func (r Refused) Error() string { return string(r) }

// Unavailable is why it cannot now: 503.
type Unavailable string

func (u Unavailable) Error() string { return string(u) }

// rebuild answers when the rebuild is done. Who hangs up before ends it: the old model stays.
func (cfg *AdminConfig) rebuild(w http.ResponseWriter, r *http.Request) {
	options, err := rebuildOptions(r)
	if err != nil {
		plain(w, http.StatusBadRequest, err.Error())
		return
	}
	// It lasts as long as it lasts. A deadline for reading would look like somebody hanging up.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})  // where there is none to set there is none
	_ = control.SetWriteDeadline(time.Time{}) // the same
	rebuilt, err := cfg.Rebuild(r.Context(), options)
	if err != nil {
		plain(w, failureStatus(err), err.Error())
		return
	}
	body, err := json.Marshal(rebuilt)
	if err != nil {
		plain(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(append(body, '\n')) // fails only when the operator has gone
}

func failureStatus(err error) int {
	var refused Refused
	var unavailable Unavailable
	switch {
	case errors.As(err, &refused):
		return http.StatusConflict
	case errors.As(err, &unavailable):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// rebuildOptions reads them from the body, and from the query, which wins.
func rebuildOptions(r *http.Request) (o RebuildOptions, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return o, errors.New("body: " + err.Error())
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &o); err != nil {
			return o, errors.New(`body: must be JSON like {"accept-stream":true,"yes":true}`)
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return o, errors.New("query: " + err.Error())
	}
	for name, to := range map[string]*bool{"accept-stream": &o.AcceptStream, "yes": &o.Yes} {
		if !query.Has(name) {
			continue
		}
		if *to, err = strconv.ParseBool(query.Get(name)); err != nil {
			return o, errors.New(name + ": must be true or false")
		}
	}
	return o, nil
}
