package httpapi

import (
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/respond"
	"example.org/registry/readmodel"
)

// recordMonths is the number of months in the registry's record.
const recordMonths = 12

// recordBody is the body of GET /api/record.
type recordBody struct {
	Months           []recordMonth `json:"months"` // oldest first
	OldestUnverified *string       `json:"oldestUnverified"`
}

// recordMonth counts the events of one month on the lists of accused.
type recordMonth struct {
	Month    string `json:"month"` // as in 2026-11
	Listed   int32  `json:"listed"`
	Verified int32  `json:"verified"`
	Delisted int32  `json:"delisted"`
}

// ownRecord serves GET /api/record (httpapi/CONTRACT.md#record).
func (p *Public) ownRecord(c *gin.Context) (respond.Response, error) {
	if err := readParams(c.Request.URL.RawQuery).err; err != nil {
		return respond.Response{}, err
	}
	at, err := p.gate.admit(c.Request)
	if err != nil {
		return respond.Response{}, err
	}
	a, err := respond.JSON(recordOf(at.view, readmodel.MonthOf(time.Now())))
	if err != nil {
		return respond.Response{}, err
	}
	a.Cache, a.Tags = p.recordCache, respond.TagsOf(a.Body.Plain())
	return at.withHeaders(a), nil
}

// recordOf counts the months that end with last.
func recordOf(v *readmodel.View, last readmodel.Month) recordBody {
	b := recordBody{Months: make([]recordMonth, recordMonths)}
	for i := range b.Months {
		month := last - readmodel.Month(recordMonths-1-i)
		b.Months[i].Month = month.Start().Format("2006-01")
	}
	for _, l := range events.Lists() {
		if l.Trusted() {
			continue
		}
		for i, n := range v.Reports(l, last, recordMonths) {
			b.Months[i].Listed += n.Verified + n.Risk
			b.Months[i].Verified += n.Verified
		}
		for i, n := range v.Delistings(l, last, recordMonths) {
			b.Months[i].Delisted += n
		}
	}
	if oldest := oldestUnverified(v); !oldest.IsZero() {
		b.OldestUnverified = new(body.Time(oldest))
	}
	return b
}

// oldestUnverified returns the time of the oldest pending report on a list of accused, or zero.
func oldestUnverified(v *readmodel.View) (oldest time.Time) {
	for _, l := range events.Lists() {
		if at, ok := v.OldestUnverified(l); ok && !l.Trusted() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}
