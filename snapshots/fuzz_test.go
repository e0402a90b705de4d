package snapshots

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzStored: only what was sealed under the same bucket and key opens, and it opens as it was.
func FuzzStored(f *testing.F) {
	f.Add("donations", []byte("d1"), []byte("value"), []byte("value"))
	f.Add("", []byte{}, []byte{}, []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, bucket string, key, value, other []byte) {
		s := newSummer()
		stored := append(make([]byte, sumSize), value...)
		s.seal(bucket, key, stored)
		if got, err := s.open(bucket, key, stored); err != nil || !bytes.Equal(got, value) {
			t.Errorf("sealed %q, opened %q, %v", value, got, err)
		}
		if got, err := s.open(bucket, key, other); err == nil && s.sum(bucket, key, got) != s.sum(bucket, key, other[sumSize:]) {
			t.Errorf("%q opened", other)
		}
		if len(stored) == len(other) && bytes.Equal(stored[:sumSize], other[:sumSize]) && differInOneByte(stored, other) {
			if _, err := s.open(bucket, key, other); err == nil {
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
	if err != nil {
		f.Fatal(err)
	}
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
