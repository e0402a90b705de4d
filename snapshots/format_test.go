package snapshots

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The formats of stores and archives. Where one differs, raise its version, and write here what the
// test prints.
func TestFormats(t *testing.T) {
	m := newMeta()
	m.DataSet, m.Checkpoint, m.Projection, m.Render = "d", at(7), 1, 1
	record, err := json.Marshal(m)
	require.NoError(t, err)
	stored := append(make([]byte, sumSize), "value"...)
	seal("donations", []byte("d1"), stored)
	if got, want := fmt.Sprintf("%d %s %x", format, record, stored), `4 {"format":4,"projection":1,"render":1,"dataSet":"d",`+
		`"checkpoint":{"stream":"REGISTRY","streamEpoch":"epoch-1","streamCreated":"2026-11-21T08:00:00.000000123Z","sequence":7,`+
		`"positions":[{"sequence":7,"time":"2026-11-21T08:00:07.000000123Z"}],"histories":["epoch-1"]},"digest":"00000000000000000000000000000000","counts":{}} 59915ce976616c7565`; got != want {
		t.Errorf("store: %s, want %s", got, want)
	}
	var archive bytes.Buffer
	require.NoError(t, manifestOf(m, at(9).Newest().Time).write(&archive, func(visit func(pair) error) error {
		for _, of := range tables() {
			if err := visit(pair{&of, []byte(of.name), []byte("v")}); err != nil {
				return err
			}
		}
		return nil
	}))
	if got, want := fmt.Sprintf("%q", unpacked(t, archive.Bytes())), `"registry-snapshot\n{\"format\":3,\"stream\":\"REGISTRY\",\"streamEpoch\":\"epoch-1\",`+
		`\"streamCreated\":\"2026-11-21T08:00:00.000000123Z\",\"sequence\":7,\"positions\":[{\"sequence\":7,\"time\":\"2026-11-21T08:00:07.000000123Z\"}],\"histories\":[\"epoch-1\"],`+
		`\"projection\":1,\"render\":1,\"digest\":\"00000000000000000000000000000000\",\"records\":{},\"entries\":{},\"time\":\"2026-11-21T08:00:09Z\",\"size\":0}\n`+
		`\x01\x10\x01entries-scammersv\x02\x0e\x01views-scammersv\x03\x13\x01tombstones-scammersv\x04\x0f\x01entries-serversv`+
		`\x05\r\x01views-serversv\x06\x12\x01tombstones-serversv\a\r\x01entries-legitv\b\v\x01views-legitv\t\x10\x01tombstones-legitv`+
		`\n\t\x01donationsv\v\x14\x01tombstones-donationsv\x00\v00000000000000000000000000000000"`; got != want {
		t.Errorf("archive: %s, want %s", got, want)
	}
}

// FuzzStored: only what was sealed under the same bucket and key opens, and it opens as it was.
func FuzzStored(f *testing.F) {
	f.Add("donations", []byte("d1"), []byte("value"), []byte("value"))
	f.Add("", []byte{}, []byte{}, []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, bucket string, key, value, other []byte) {
		stored := append(make([]byte, sumSize), value...)
		seal(bucket, key, stored)
		if got, err := unseal(bucket, key, stored); err != nil || !bytes.Equal(got, value) {
			t.Errorf("sealed %q, opened %q, %v", value, got, err)
		}
		if got, err := unseal(bucket, key, other); err == nil && checksum(bucket, key, got) != checksum(bucket, key, other[sumSize:]) {
			t.Errorf("%q opened", other)
		}
		if len(stored) == len(other) && bytes.Equal(stored[:sumSize], other[:sumSize]) && differInOneByte(stored, other) {
			if _, err := unseal(bucket, key, other); err == nil {
				t.Errorf("%q opened in the place of %q", other, stored)
			}
		}
	})
}

func differInOneByte(a, b []byte) bool {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n == 1
}

// FuzzMeta: any meta record is usable or not, and one that is usable survives a round trip.
func FuzzMeta(f *testing.F) {
	good, err := json.Marshal(newMeta())
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"format":1,"counts":null}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		var m, again meta
		if json.Unmarshal(record, &m) != nil || m.usable() != nil {
			return
		}
		out, err := json.Marshal(m)
		if err != nil {
			return // a time that JSON cannot hold was not written by this program
		}
		if err := json.Unmarshal(out, &again); err != nil || !again.same(m) {
			t.Errorf("%s became %+v, %v", record, again, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(twice, out) {
			t.Errorf("%s became %s, then %s, %v", record, out, twice, err)
		}
	})
}
