package httpapi_test

import (
	"fmt"
	"net/http/httptest"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
)

// The handler answers from a model, which any source may fill.
func ExampleNewPublic() {
	model := readmodel.New()
	public, err := httpapi.NewPublic(httpapi.Config{Health: &httpapi.Health{
		Reader:    model,
		Readiness: func() httpapi.Readiness { return httpapi.Readiness{Ready: true, AsOf: time.Now()} },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer public.Close()

	model.Apply([]readmodel.Record{readmodel.NewRenderer().Render(1, events.Entry{
		Revision: 1, List: events.Scammers, EntryID: "66f2c0ffee", ChatID: "900000000000000001", Name: "Jan Oszust", Verified: true, ReportID: "R-2026-17",
	})}, 1)

	answer := httptest.NewRecorder()
	public.ServeHTTP(answer, httptest.NewRequest("GET", "/api/scammers?limit=1", nil))
	fmt.Println(answer.Code, answer.Body)
	// Output:
	// 200 {"data":[{"_id":"66f2c0ffee","name":"Jan Oszust","id":"900000000000000001","descHtml":"","verified":true,"proofsId":null,"reportId":"R-2026-17"}],"total":1,"hasMore":false}
}
