package gramindex

import "unicode/utf8"

// maxGram is the longest gram in characters.
const maxGram = 3

// separator parts the fields of a text. No gram crosses it, and no needle holds it.
const separator = '\n'

// eachGram calls f with every gram of text of one to maxGram characters, repeated ones too.
func eachGram(text string, f func(gram string)) {
	var starts [maxGram]int // of the last characters, the newest last
	known := 0
	for i, r := range text {
		if r == separator {
			known = 0
			continue
		}
		copy(starts[:], starts[1:])
		starts[maxGram-1] = i
		known = min(known+1, maxGram)
		end := i + utf8.RuneLen(r)
		for n := 1; n <= known; n++ {
			f(text[starts[maxGram-n]:end])
		}
	}
}

// needleGrams are the grams that a text with needle in it must hold: the needle itself when it is
// short, else its longest grams, each once.
func needleGrams(needle string) []string {
	if utf8.RuneCountInString(needle) <= maxGram {
		return []string{needle}
	}
	seen := map[string]bool{}
	var grams []string
	eachGram(needle, func(gram string) {
		if utf8.RuneCountInString(gram) == maxGram && !seen[gram] {
			seen[gram] = true
			grams = append(grams, gram)
		}
	})
	return grams
}

// Exact says whether Find needs no verification for needle.
func Exact(needle string) bool { return utf8.RuneCountInString(needle) <= maxGram }
