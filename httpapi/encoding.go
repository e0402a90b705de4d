package httpapi

import (
	"strconv"
	"strings"
)

// encoding is a content coding of an answer.
type encoding uint8

// The encodings on offer, the preferred one last.
const (
	identity encoding = iota
	gzipped
	zstandard
	numEncodings
)

// minEncoded is the least size in bytes of a body that is worth encoding (API contract, headers).
const minEncoded = 1024

// suffix is what sets the entity tag of the encoded variant apart.
func (e encoding) suffix() string {
	switch e {
	case gzipped:
		return "-gzip"
	case zstandard:
		return "-zstd"
	}
	return ""
}

// negotiate picks the encoding with the greatest weight in Accept-Encoding, zstd before gzip
// before none among equals (RFC 9110, 12.5.3). None is always acceptable: a reader who refuses
// everything gets that rather than an error.
func negotiate(lines []string) encoding {
	if len(lines) == 0 {
		return identity
	}
	weights := [numEncodings]int{-1, -1, -1}
	other := -1
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			weigh(part, &weights, &other)
		}
	}
	if weights[gzipped] < 0 {
		weights[gzipped] = other // of what * may mean, gzip is what everything can read
	}
	best := identity
	for _, e := range []encoding{gzipped, zstandard} {
		if weights[e] > 0 && weights[e] >= weights[best] {
			best = e
		}
	}
	return best
}

// weigh notes one element of Accept-Encoding.
func weigh(part string, weights *[numEncodings]int, other *int) {
	coding, parameter, _ := strings.Cut(part, ";")
	w := weight(parameter)
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "identity":
		weights[identity] = w
	case "gzip", "x-gzip":
		weights[gzipped] = w
	case "zstd":
		weights[zstandard] = w
	case "*":
		*other = w
	}
}

// weight reads q=0.5 in thousandths; without one it is 1000, malformed it is 0: not accepted.
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
