package events

import "time"

// time reads an RFC 3339 time and makes it UTC.
func (r reader) time(field string, to *time.Time) error {
	b, err := r.bytes(field)
	if err != nil {
		return err
	}
	return parseTime(field, b, to)
}

// parseTime is as strict as RFC 3339, which allows a small t and z where Go does not, and
// does not allow what shaped refuses. A leap second is refused: no time.Time stands for it.
func parseTime(field string, s []byte, to *time.Time) error {
	if len(s) > maxTimeText {
		return wrong(field, "longer than 64 bytes")
	}
	var buf [maxTimeText]byte
	b := buf[:copy(buf[:], s)]
	if !shaped(b) {
		return wrong(field, "not an RFC 3339 time")
	}
	if b[10] == 't' {
		b[10] = 'T'
	}
	if b[len(b)-1] == 'z' {
		b[len(b)-1] = 'Z'
	}
	var t time.Time
	if t.UnmarshalText(b) != nil {
		return wrong(field, "not an RFC 3339 time")
	}
	*to = t.UTC()
	return nil
}

// shaped refuses what Go's parser lets through: an hour of one digit, a comma before the
// fraction, an offset of 24 hours or 60 minutes.
func shaped(b []byte) bool {
	const seconds = len("2006-01-02T15:04:05")
	if len(b) <= seconds || b[13] != ':' || b[seconds] == ',' {
		return false
	}
	if last := b[len(b)-1]; last == 'Z' || last == 'z' {
		return true
	}
	offset := b[len(b)-len("+00:00"):]
	return string(offset[1:3]) < "24" && string(offset[4:]) < "60"
}
