package events

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode validates e and writes it as structured JSON: members in a fixed order, no white space,
// times in UTC, cut to milliseconds. The error is an *Error.
func Encode(e Event) ([]byte, error) {
	if err := validate(&e); err != nil {
		return nil, err
	}
	w := writer{make([]byte, 0, 512)}
	w.text(`{"specversion":"1.0","id":`, e.ID)
	w.text(`,"source":`, e.Source)
	w.text(`,"type":`, string(e.Type))
	if !e.Time.IsZero() {
		w.time(`,"time":`, e.Time)
	}
	w.raw(`,"datacontenttype":"application/json","data":`)
	w.data(e.Data)
	w.raw(`}`)
	if len(w.b) > MaxPayload {
		return nil, wrong("event", "longer than "+strconv.Itoa(MaxPayload)+" bytes")
	}
	return w.b, nil
}

// AppendData appends only the data to dst, one text for one value: digests and ties rest on it. d must be
// valid (Validate); otherwise it appends nothing, or JSON that Decode refuses.
func AppendData(dst []byte, d Data) []byte {
	w := writer{dst}
	w.data(d)
	return w.b
}

// writer appends JSON. It replaces invalid UTF-8 in strings.
type writer struct{ b []byte }

func (w *writer) raw(s string) { w.b = append(w.b, s...) }

func (w *writer) text(before, s string) {
	w.raw(before)
	// The only error is invalid UTF-8, which the library has already replaced.
	w.b, _ = jsontext.AppendQuote(w.b, s)
}

func (w *writer) time(before string, t time.Time) {
	w.raw(before)
	w.b = append(w.b, '"')
	w.b = t.UTC().Truncate(time.Millisecond).AppendFormat(w.b, time.RFC3339Nano)
	w.b = append(w.b, '"')
}

func (w *writer) integer(before string, n int64) {
	w.raw(before)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *writer) flag(before string, v bool) {
	w.raw(before)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) data(d Data) {
	switch d := d.(type) {
	case Entry:
		w.entry(&d)
	case Delisting:
		w.target(d.List, d.EntryID)
		w.integer(`,"revision":`, d.Revision)
		w.raw(`}`)
	case Views:
		w.target(d.List, d.EntryID)
		w.integer(`,"revision":`, d.Revision)
		w.integer(`,"views":`, d.Views)
		w.raw(`}`)
	case Donation:
		w.donation(&d)
	case DonationRemoval:
		w.text(`{"donationId":`, d.DonationID)
		w.integer(`,"revision":`, d.Revision)
		w.raw(`}`)
	}
}

func (w *writer) target(l List, entryID string) {
	w.text(`{"list":`, string(l))
	w.text(`,"entryId":`, entryID)
}

func (w *writer) entry(e *Entry) {
	w.target(e.List, e.EntryID)
	w.text(`,"chatId":`, e.ChatID)
	w.text(`,"name":`, e.Name)
	w.text(`,"reason":`, e.Reason)
	w.flag(`,"verified":`, e.Verified)
	if e.Proofs.ID == "" {
		w.raw(`,"proofs":{"id":null`)
	} else {
		w.text(`,"proofs":{"id":`, e.Proofs.ID)
	}
	w.flag(`,"private":`, e.Proofs.Private)
	w.text(`},"reportId":`, e.ReportID)
	w.time(`,"reportedAt":`, e.ReportedAt)
	w.integer(`,"revision":`, e.Revision)
	w.raw(`}`)
}

func (w *writer) donation(d *Donation) {
	w.text(`{"donationId":`, d.DonationID)
	w.text(`,"status":`, string(d.Status))
	w.text(`,"amount":`, d.Amount)
	w.text(`,"currency":`, d.Currency)
	w.integer(`,"confirmations":`, d.Confirmations)
	w.integer(`,"requiredConfirmations":`, d.RequiredConfirmations)
	w.time(`,"createdAt":`, d.CreatedAt)
	w.time(`,"updatedAt":`, d.UpdatedAt)
	w.integer(`,"revision":`, d.Revision)
	w.raw(`}`)
}
