package terms

import "strings"

// The bounds of a word whose stem is guessed, and of the stem, in letters. A shorter stem would be ambiguous, and
// a longer text is hardly a word.
const (
	minGuessed = 4
	maxGuessed = 32
	minStem    = 3
)

// guessStem returns an unknown word, which has no marks, without its ending. Most unknown words are loan words or
// names, whose forms are regular: they end as a noun, an adjective in -owy, or a verb in -ować.
func guessStem(plain string) string {
	hasOtherRunes := strings.ContainsFunc(plain, func(r rune) bool { return r < 'a' || r > 'z' })
	if len(plain) < minGuessed || len(plain) > maxGuessed || hasOtherRunes {
		return plain
	}

	for _, endings := range [...]string{verbEndings, adjectiveEndings, nounEndings} {
		if stem := cutEnding(plain, endings); stem != plain {
			return stem
		}
	}
	return plain
}

// cutEnding returns a word without the longest of the endings that leaves a stem. For an ending such as dzie=d,
// which has softened a consonant of the stem, the stem gets the consonant after "=" back: sadzie becomes sad.
func cutEnding(word, endings string) string {
	longest := 0
	stem := word

	for rule := range strings.FieldsSeq(endings) {
		ending, consonant, _ := strings.Cut(rule, "=")
		rest, ok := strings.CutSuffix(word, ending)
		if ok && len(ending) > longest && len(rest)+len(consonant) >= minStem {
			longest = len(ending)
			stem = rest + consonant
		}
	}
	return stem
}

// The endings, without marks.
const (
	verbEndings = `uj uje ujesz ujemy ujecie uja ujac ujacy ujaca ujace ujacego ujacej ujacym ujacych ujacymi owac owal owala owalo owali owaly owalem
		owalam owales owalas owalismy owalysmy owalby owalaby owaliby owawszy owano owany owana owane owani owanego owanej owanemu owanym owanych owanymi
		owanie owania owaniem owaniu owaniach`
	adjectiveEndings = `owy owa owe owego owej owemu owym owych owymi iego iemu imi ich ego emu ymi ych`
	nounEndings      = `a u owi em iem y i e ie o ow om ami ach owie dzie=d rze=r cie=t nie=n mie=m bie=b pie=p wie=w fie=f sie=s zie=z le=l ce=k dze=g`
)
