package readmodel_test

import (
	"context"
	"fmt"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// An event is rendered and applied; a view answers from memory, and stays as it was.
func Example() {
	model, renderer := readmodel.New(), readmodel.NewRenderer()
	before := model.View()
	model.Apply([]readmodel.Record{renderer.Render(7, events.Entry{
		Revision: 1,
		List:     events.Scammers, EntryID: "66f2c0ffee", ChatID: "900000000000000001", Name: "Jan Oszust", Verified: true,
		Reason: "Wziął **zaliczkę** i zniknął.", ReportID: "R-2026-17", ReportedAt: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC),
	})}, 7)

	query := readmodel.ListQuery{List: events.Scammers, Search: "zaliczkę", Limit: 10}
	for _, view := range []*readmodel.View{before, model.View()} {
		page, err := view.List(context.Background(), query)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(view.Sequence(), page.Total)
		for _, row := range page.Rows {
			fmt.Println(row.ID())
		}
	}
	// Output:
	// 0 0
	// 7 1
	// 66f2c0ffee
}
