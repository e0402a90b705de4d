package site

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.org/registry/readmodel"
)

func november() readmodel.Month {
	return readmodel.MonthOf(time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC))
}

// Bars stand on the line, none is higher than the chart, what is there is seen, and the sums are
// those of the months.
func TestCharts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Reports{Last: november()}
		n := rapid.OneOf(rapid.Int32Range(0, 3), rapid.Int32Range(0, 1<<30))
		for range ChartMonths {
			r.Counts = append(r.Counts, readmodel.Reports{Verified: n.Draw(t, "verified"), Risk: n.Draw(t, "risk")})
		}
		if rapid.Bool().Draw(t, "gone") {
			for range ChartMonths {
				r.Gone = append(r.Gone, n.Draw(t, "taken off"))
			}
		}
		c := newChart("Zgłoszenia", r, lowChart)
		if len(c.Bars) == 0 {
			for _, n := range r.Gone {
				if n != 0 {
					t.Fatalf("no chart of %v", r.Gone)
				}
			}
			for _, n := range r.Counts {
				if n != (readmodel.Reports{}) {
					t.Fatalf("no chart of %v", r.Counts)
				}
			}
			return
		}
		for i, b := range c.Bars {
			if b.Top < chartTop-2 || b.Top+b.Open != b.Between || b.Between+b.Solid != c.Bottom || c.Height <= c.Label {
				t.Fatalf("%+v in %+v", b, c)
			}
			if b.GoneTop < chartTop || b.GoneTop+b.GoneHeight != c.Bottom || r.Gone != nil && (b.GoneHeight > 0) != (r.Gone[i] > 0) {
				t.Fatalf("%+v of %v", b, r.Gone)
			}
			if (b.Solid > 0) != (r.Counts[i].Verified > 0) || (b.Open > 0) != (r.Counts[i].Risk > 0) {
				t.Fatalf("%+v of %+v", b, r.Counts[i])
			}
		}
	})
}

func TestChartWords(t *testing.T) {
	r := Reports{Last: november(), Counts: make([]readmodel.Reports, ChartMonths)}
	r.Counts[0], r.Counts[11] = readmodel.Reports{Verified: 3}, readmodel.Reports{Verified: 1, Risk: 2}
	c := newChart("Zgłoszenia", r, tallChart)
	if first, last := c.Bars[0], c.Bars[11]; first.Name != "grudzień 2025" || first.Short != "gru" || last.Name != "listopad 2026" || last.Short != "lis" || last.Total != "3" || c.Bars[5].Total != "" {
		t.Errorf("%+v", c.Bars)
	}
	if c.Verified != "4" || c.Risk != "2" || c.Most != "" {
		t.Errorf("%+v", c)
	}
	if r.Counts[3].Risk = 12345; newChart("", r, tallChart).Most != "12\u00a0345" {
		t.Error("numbers of five digits stand above bars")
	}
	w := newWorld(t, full(), people()...)
	page := w.check(t, readmodel.CheckQuery{})
	if got := len(elements(t, page, "tr")); got != 1+ChartMonths {
		t.Errorf("the table has %d rows", got)
	}
	if text := seen(t, page); !strings.Contains(text, "potwierdzone: 3") || !strings.Contains(text, "czekają na sprawdzenie: 3") {
		t.Errorf("the sums are not said: %s", text)
	}
}
