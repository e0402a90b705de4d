package mirror

import (
	"bytes"
	"encoding/json"
	"testing"

	"example.org/registry/events"
)

// FuzzPage: whatever a server sends, a page that is taken can be kept: lines stay lines, sequences go
// forwards, and the next page is another one.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"epoch":"E","since":5,"until":9,"upToDate":true,"changes":[{"seq":7,"op":"set","list":"legit","reportedAt":"2026-01-01T00:00:00Z","entry":{"_id":"a"}},{"seq":8,"op":"remove","list":"servers","_id":"b"}]}`))
	f.Add([]byte(`{"epoch":"E","since":5,"until":5,"upToDate":true,"changes":[]}`))
	f.Add([]byte("{\"epoch\":\"E\",\"since\":5,\"until\":6,\"changes\":[{\"seq\":6,\"op\":\"set\",\"list\":\"legit\",\"reportedAt\":\"x\",\"entry\":{\n\"_id\":\"a\"}}]}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var p page
		if json.Unmarshal(body, &p) != nil || p.check("E", 5) != nil {
			return
		}
		if p.Until < 5 || p.Until == 5 && !p.UpToDate {
			t.Errorf("until %d", p.Until)
		}
		last := uint64(5)
		for _, c := range p.Changes {
			if c.Sequence <= last || c.Sequence > p.Until || !events.IsID(c.EntryID) || bytes.ContainsAny(c.Entry, "\r\n") {
				t.Errorf("%+v", c)
			}
			last = c.Sequence
		}
	})
}
