package terms

import "strings"

// Bounds in letters: of a word whose stem is guessed, and of the stem. A shorter stem is ambiguous,
// and a longer text is no word.
const (
	minGuessed = 4
	maxGuessed = 32
	minStem    = 3
)

// guess returns an unknown word, which has no marks, without its ending. Such a word is a loan word
// or a name, and is inflected regularly: as a noun, or as an adjective in -owy or a verb in -ować
// derived from one.
func guess(plain string) string {
	if len(plain) < minGuessed || len(plain) > maxGuessed || strings.ContainsFunc(plain, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return plain
	}
	for _, endings := range [...]string{verbEndings, adjectiveEndings, nounEndings} {
		longest, instead := "", ""
		for ending := range strings.FieldsSeq(endings) {
			ending, softened, _ := strings.Cut(ending, "=")
			if len(ending) > len(longest) && strings.HasSuffix(plain, ending) && len(plain)-len(ending)+len(softened) >= minStem {
				longest, instead = ending, softened
			}
		}
		if longest != "" {
			return strings.TrimSuffix(plain, longest) + instead
		}
	}
	return plain
}

// The endings, without marks. After "=" is the consonant of the stem that the ending has softened.
const (
	verbEndings = `uj uje ujesz ujemy ujecie uja ujac ujacy ujaca ujace ujacego ujacej ujacym ujacych ujacymi owac owal owala owalo owali owaly owalem
		owalam owales owalas owalismy owalysmy owalby owalaby owaliby owawszy owano owany owana owane owani owanego owanej owanemu owanym owanych owanymi
		owanie owania owaniem owaniu owaniach`
	adjectiveEndings = `owy owa owe owego owej owemu owym owych owymi iego iemu imi ich ego emu ymi ych`
	nounEndings      = `a u owi em iem y i e ie o ow om ami ach owie dzie=d rze=r cie=t nie=n mie=m bie=b pie=p wie=w fie=f sie=s zie=z le=l ce=k dze=g`
)
