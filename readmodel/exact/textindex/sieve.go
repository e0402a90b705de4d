package textindex

import (
	"strings"

	"example.org/registry/readmodel"
)

// A sieve rules out most blocks that have no slot of a needle, without reading their lists. It is a
// set of hashes, a bit for each: of every run of nameRun characters in the first field of a slot's
// names, and of every run of idRun in the other fields.
const (
	sieveBits = 18
	sieveSize = 1 << sieveBits / 8
	// nameRun is long enough that most runs of a name are in few blocks.
	nameRun = 6
	// idRun is short: there are only 1,000 runs of three digits, so ids of digits fill few bits, and the
	// sieve rules out needles with a letter.
	idRun = maxExact
)

// eachRun calls f with the hash of every n characters in a row.
func eachRun(text string, n int, f func(hash uint32)) {
	const shift = 10 // for each character: six of them fit
	h, seen := uint64(0), 0
	for _, r := range text {
		h = (h<<shift + uint64(r)) & (1<<(shift*n) - 1)
		if seen++; seen >= n {
			f(uint32((h | uint64(n)<<60) * 0x9e3779b97f4a7c15 >> (64 - sieveBits)))
		}
	}
}

// runsOf returns the hashes of a needle's runs.
func runsOf(needle string, n int) (runs []uint32) {
	eachRun(needle, n, func(hash uint32) { runs = append(runs, hash) })
	return runs
}

// sift adds a slot's names to the sieve.
func (b *Builder) sift(names string) {
	add := func(hash uint32) { b.sieve[hash/8] |= 1 << (hash % 8) }
	name, others, _ := strings.Cut(names, string(separator))
	eachRun(name, nameRun, add)
	eachRun(others, idRun, add)
}

// mayHold reports whether the names of a slot may contain the needle.
func (b *Block) mayHold(q *Query) bool {
	return b.hasRuns(q.idRuns) || q.text != readmodel.TextOfChatIDs && b.hasRuns(q.nameRuns)
}

// hasRuns reports whether the sieve has all of the runs. It moves a missing run to the front, since
// most other blocks lack it, too.
func (b *Block) hasRuns(runs []uint32) bool {
	sieve := b.data[countSize:headSize]
	for i, hash := range runs {
		if sieve[hash/8]>>(hash%8)&1 == 0 {
			runs[0], runs[i] = runs[i], runs[0]
			return false
		}
	}
	return true
}
