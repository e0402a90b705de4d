package events

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode validates e and writes it as structured JSON: members in a fixed order, no white space,
// times in UTC, cut to milliseconds. The error is an *Error.
func Encode(e Event) ([]byte, error) {
	if err := Validate(e); err != nil {
		return nil, err
	}

	w := writer{make([]byte, 0, 512)}
	w.addText(`{"specversion":"1.0","id":`, e.ID)
	w.addText(`,"source":`, e.Source)
	w.addText(`,"type":`, string(e.Type))
	if !e.Time.IsZero() {
		w.addTime(`,"time":`, e.Time)
	}
	w.add(`,"datacontenttype":"application/json","data":`)
	e.Data.appendTo(&w)
	w.add(`}`)

	if len(w.b) > MaxPayload {
		return nil, newError("event", "longer than "+strconv.Itoa(MaxPayload)+" bytes")
	}
	return w.b, nil
}

// AppendData appends the JSON of d, without an envelope, to dst. Equal data give equal text: digests and
// Compare rest on that. d must be valid (Validate).
func AppendData(dst []byte, d Data) []byte {
	w := writer{dst}
	d.appendTo(&w)
	return w.b
}

// writer appends JSON. A method with a parameter named before appends before first, such as a comma and a name.
type writer struct{ b []byte }

func (w *writer) add(s string) { w.b = append(w.b, s...) }

func (w *writer) addText(before, s string) {
	w.add(before)
	// The only error is for invalid UTF-8, which AppendQuote has then replaced.
	w.b, _ = jsontext.AppendQuote(w.b, s)
}

func (w *writer) addTime(before string, t time.Time) {
	w.add(before)
	w.b = append(w.b, '"')
	w.b = t.UTC().Truncate(time.Millisecond).AppendFormat(w.b, time.RFC3339Nano)
	w.b = append(w.b, '"')
}

func (w *writer) addInteger(before string, n int64) {
	w.add(before)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *writer) addBool(before string, v bool) {
	w.add(before)
	w.b = strconv.AppendBool(w.b, v)
}

func (d Delisting) appendTo(w *writer) {
	w.addTarget(d.List, d.EntryID)
	w.addInteger(`,"revision":`, d.Revision)
	w.add(`}`)
}

func (v Views) appendTo(w *writer) {
	w.addTarget(v.List, v.EntryID)
	w.addInteger(`,"revision":`, v.Revision)
	w.addInteger(`,"views":`, v.Views)
	w.add(`}`)
}

func (d DonationRemoval) appendTo(w *writer) {
	w.addText(`{"donationId":`, d.DonationID)
	w.addInteger(`,"revision":`, d.Revision)
	w.add(`}`)
}

// addTarget begins the object of data about an entry.
func (w *writer) addTarget(l List, entryID string) {
	w.addText(`{"list":`, string(l))
	w.addText(`,"entryId":`, entryID)
}

func (e Entry) appendTo(w *writer) {
	w.addTarget(e.List, e.EntryID)
	w.addText(`,"chatId":`, e.ChatID)
	w.addText(`,"name":`, e.Name)
	w.addText(`,"reason":`, e.Reason)
	w.addBool(`,"verified":`, e.Verified)

	if e.Proofs.ID == "" {
		w.add(`,"proofs":{"id":null`)
	} else {
		w.addText(`,"proofs":{"id":`, e.Proofs.ID)
	}
	w.addBool(`,"private":`, e.Proofs.Private)

	w.addText(`},"reportId":`, e.ReportID)
	w.addTime(`,"reportedAt":`, e.ReportedAt)
	w.addInteger(`,"revision":`, e.Revision)
	w.add(`}`)
}

func (d Donation) appendTo(w *writer) {
	w.addText(`{"donationId":`, d.DonationID)
	w.addText(`,"status":`, string(d.Status))
	w.addText(`,"amount":`, d.Amount)
	w.addText(`,"currency":`, d.Currency)
	w.addInteger(`,"confirmations":`, d.Confirmations)
	w.addInteger(`,"requiredConfirmations":`, d.RequiredConfirmations)
	w.addTime(`,"createdAt":`, d.CreatedAt)
	w.addTime(`,"updatedAt":`, d.UpdatedAt)
	w.addInteger(`,"revision":`, d.Revision)
	w.add(`}`)
}
