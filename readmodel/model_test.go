package readmodel

import (
	"context"
	"testing"
	"time"

	"example.org/registry/events"
)

func TestSmoke(t *testing.T) {
	r := NewRenderer()
	m := New()
	e := events.Entry{List: events.Scammers, EntryID: "a1", ChatID: "123", Name: "Łukasz", Reason: "**x** <b>y</b>", Verified: true, ReportID: "r", ReportedAt: time.Unix(1e9, 0).UTC()}
	m.Apply([]Record{r.Render(1, e)}, 1)
	p, _ := m.View().List(context.Background(), ListQuery{List: events.Scammers, Limit: 30, Search: "X y"})
	t.Log(string(p.AppendJSON(nil)))
	c, _ := m.View().Check(context.Background(), CheckQuery{ID: "123"})
	t.Log(string(c.AppendJSON(nil)))
}
