package respond

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// encoding is a content coding of a response.
type encoding uint8

// The available encodings.
const (
	identity encoding = iota
	gzipped
	numEncodings
)

// MinEncoded is the size in bytes from which a body is encoded (httpapi/CONTRACT.md#caching).
const MinEncoded = 1024

// orIdentity returns e, or identity if the body is too small to encode.
func (e encoding) orIdentity(body []byte) encoding {
	if len(body) < MinEncoded {
		return identity
	}
	return e
}

// suffix returns the suffix of the encoded variant's entity tag.
func (e encoding) suffix() string {
	if e == gzipped {
		return "-gzip"
	}
	return ""
}

// negotiate returns the encoding with the greatest weight in Accept-Encoding (RFC 9110, 12.5.3);
// among equals it prefers gzip. It always accepts identity: a client that refuses everything gets
// that rather than an error.
func negotiate(lines []string) encoding {
	plain, zipped, other := -1, -1, -1
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			coding, parameter, _ := strings.Cut(part, ";")
			w := weight(parameter)
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "identity":
				plain = w
			case "gzip", "x-gzip":
				zipped = w
			case "*":
				other = w
			}
		}
	}
	if zipped < 0 {
		zipped = other // * may mean any; every client can read gzip
	}
	if zipped > 0 && zipped >= plain {
		return gzipped
	}
	return identity
}

// weight reads q=0.5 in thousandths. It returns 1000 if absent, and 0, not acceptable, if
// malformed.
func weight(parameter string) int {
	parameter = strings.TrimSpace(parameter)
	if parameter == "" {
		return 1000
	}
	name, text, _ := strings.Cut(parameter, "=")
	if !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 0
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return int(q * 1000)
}

// Tags is the entity tag of a content, for each encoding.
type Tags struct {
	quoted [numEncodings]string   // without W/
	header [numEncodings][]string // header values, shared: must not be modified
}

// NewTags returns the tags of the content with this tag.
func NewTags(tag string) (t Tags) {
	for e := range numEncodings {
		t.quoted[e] = `"` + tag + e.suffix() + `"`
		t.header[e] = []string{t.quoted[e]}
	}
	return t
}

// Plain returns the tag of the unencoded content, quoted.
func (t *Tags) Plain() string { return t.quoted[identity] }

// TagsOf returns tags made by hashing a body.
func TagsOf(body []byte) *Tags {
	sum := sha256.Sum256(body)
	return new(NewTags(hex.EncodeToString(sum[:16])))
}

// clientTags records which variants of a content a client has, by its If-None-Match.
type clientTags struct {
	variants [numEncodings]bool
	any      bool // at least one, or the client sent *
}

// matchClient compares weakly, as RFC 9110, 13.1.2 defines If-None-Match. It ignores everything after
// a malformed tag.
func (t *Tags) matchClient(lines []string) (client clientTags) {
	for _, line := range lines {
		if strings.TrimSpace(line) == "*" {
			client.any = true
			continue
		}
		for tag, rest := nextTag(line); tag != ""; tag, rest = nextTag(rest) {
			for e := range numEncodings {
				if tag == t.quoted[e] {
					client.variants[e], client.any = true, true
				}
			}
		}
	}
	return client
}

// nextTag splits the first entity tag, without W/, off a list of tags. tag is "" if there is none.
func nextTag(list string) (tag, rest string) {
	list = strings.TrimLeft(list, " \t,")
	list = strings.TrimPrefix(list, "W/")
	if !strings.HasPrefix(list, `"`) {
		return "", ""
	}
	end := strings.IndexByte(list[1:], '"')
	if end < 0 {
		return "", ""
	}
	return list[:end+2], list[end+2:]
}

// isNotModified reports whether the response to a client that accepts e is a 304 regardless of the
// body. It is false if the client accepts the encoded variant but does not have it: the tag of that 304
// depends on whether the body is large enough to encode.
func (client clientTags) isNotModified(e encoding) bool {
	return client.any && (e == identity || client.variants[gzipped])
}

// compressor encodes whole bodies. Any goroutine may use it.
type compressor struct {
	gzip sync.Pool // of *gzip.Writer
}

// appendEncoded appends body, compressed.
func (c *compressor) appendEncoded(dst, body []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	w, ok := c.gzip.Get().(*gzip.Writer)
	if ok {
		w.Reset(out)
	} else {
		w, _ = gzip.NewWriterLevel(out, gzip.BestSpeed) // fails only for an unknown level
	}
	defer c.gzip.Put(w)
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return out.Bytes(), nil
}
