package readmodel

// The bounds of a gram, in code points.
const (
	minGram = minAlike
	maxGram = 12 // longer ones are no rarer
)

// gramsFor says how long the grams are of a key that a window of so many code points finds, and how
// far apart the ones that are kept.
func gramsFor(window int) (size, step int) {
	size = min(max(window-1, minGram), maxGram)
	return size, window - size + 1
}

// windowOf is the fewest code points of a search that can be similar to a key of n.
func windowOf(n int) int { return max(minAlike, (n+1)/2) }

// keptGrams are the grams of a name's key that a search is found by.
func keptGrams(key string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		at := codePoints(key)
		n := len(at) - 1
		window := windowOf(n)
		size, step := gramsFor(window)
		if n < minAlike {
			return
		}
		// A gram at p lies in the windows that start at p-step+1 to p.
		for p := step - 1; yield(key[at[p]:at[p+size]]) && p < n-window; {
			p += step
		}
	}
}

// codePoints is where each code point of s starts, and where the last one ends.
func codePoints(s string) []int {
	at := make([]int, 0, len(s)+1)
	for i := range s {
		at = append(at, i)
	}
	return append(at, len(s))
}
