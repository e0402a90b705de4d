package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
)

// The handler answers from a model, which any source may fill.
func ExampleNewPublic() {
	model, api, stop, err := exampleServer()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	list(model, 1, "Jan Oszust")
	var page struct {
		Data []struct {
			Name string `json:"name"`
		} `json:"data"`
		Total int `json:"total"`
	}
	fmt.Println(ask(api, "/api/scammers?limit=1", &page))
	fmt.Printf("%+v\n", page)
	// Output:
	// <nil>
	// {Data:[{Name:Jan Oszust}] Total:1}
}

// A client that keeps a copy asks for the position of the feed, and then for what has changed since.
func ExampleNewPublic_changes() {
	model, api, stop, err := exampleServer()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	list(model, 1, "Jan Oszust")
	var feed struct {
		Epoch string `json:"epoch"`
	}
	fmt.Println(ask(api, "/api/changes", &feed))
	var since uint64
	for _, name := range []string{"", "Jan Oszust, dawniej Kowalski"} {
		if name != "" {
			list(model, 2, name)
		}
		var page struct {
			Until    uint64 `json:"until"`
			UpToDate bool   `json:"upToDate"`
			Changes  []struct {
				Op    string `json:"op"`
				Entry struct {
					Name string `json:"name"`
				} `json:"entry"`
			} `json:"changes"`
		}
		if err := ask(api, fmt.Sprintf("/api/changes/%s?since=%d", feed.Epoch, since), &page); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(page.Changes, page.UpToDate)
		since = page.Until
	}
	// Output:
	// <nil>
	// [{set {Jan Oszust}}] true
	// [{set {Jan Oszust, dawniej Kowalski}}] true
}

func exampleServer() (*readmodel.Model, *httptest.Server, func(), error) {
	model := readmodel.New()
	model.NameFeed("example")
	public, err := httpapi.NewPublic(httpapi.Config{Health: &httpapi.Health{
		Reader:    model,
		Readiness: func() httpapi.Readiness { return httpapi.Readiness{Ready: true, AsOf: time.Now()} },
	}})
	if err != nil {
		return nil, nil, nil, err
	}
	server := httptest.NewServer(public)
	return model, server, func() { server.Close(); public.Close() }, nil
}

func list(model *readmodel.Model, sequence uint64, name string) {
	model.Apply([]readmodel.Record{readmodel.NewRenderer().Render(sequence, events.Entry{Revision: int64(sequence), List: events.Scammers, EntryID: "66f2c0ffee",
		ChatID: "900000000000000001", Name: name, Verified: true, ReportID: "R-2026-17"})}, sequence)
}

func ask(api *httptest.Server, path string, into any) error {
	response, err := api.Client().Get(api.URL + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}
