package terms

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVersion fails when the analysis changes: then Version has to change too, or an index on disk
// would keep terms that questions no longer have, and would miss entries without a word.
//
// It hashes the tables of the package, without comments, and what becomes of their words and of a
// sample.
func TestVersion(t *testing.T) {
	h, a := sha256.New(), analyzer(t)
	texts := sample()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case filepath.Ext(path) != ".txt" && filepath.Ext(path) != ".fst":
			return nil
		}
		content, err := os.ReadFile(path)
		if filepath.Ext(path) == ".txt" {
			var words [][]string
			for line := range lines(string(content)) {
				words = append(words, line)
				texts = append(texts, strings.Join(line, " "))
			}
			content = fmt.Append(nil, words)
		}
		fmt.Fprintf(h, "%s %x\n", filepath.ToSlash(path), sha256.Sum256(content))
		return err
	})
	require.NoError(t, err)
	for _, text := range texts {
		for _, token := range a.Tokens(nil, text) {
			fmt.Fprintf(h, "%+v\n", token)
		}
	}
	const want = "6 0a483d7576ba9dd3"
	if got := fmt.Sprint(Version, " ", hex.EncodeToString(h.Sum(nil)[:8])); got != want {
		t.Errorf("the analysis is %q, was %q: raise Version and write the new value here", got, want)
	}
}

// sample is texts of every kind that the analysis tells apart: words of the table, of the lexicon
// and of neither, short and long ones, foreign ones, numbers, names with numbers, marks, other
// scripts, other forms of a letter.
func sample() []string {
	return []string{
		"Oszukał mnie na przelew: wziął pieniądze i zniknął. Nie polecam! Wysyłają linki, oszukują od dwóch lat.",
		"Podszywał się pod administratora serwera; kradzież kont, fałszywe nagrody, zaliczki, paysafecard.",
		"oszukal pieniadze wysylaja kradna nagrode zaliczke zolty ŻÓŁTY Żółć źdźbło",
		"xX_kotek2013_Xx 900000000000000000001 żabcia2013 a1 1a ab12cd34 ²³ ½ Ⅷ ٣٤ 10-20 20,5zł",
		"discord.gg/abc https://example.test/ścieżka?id=7#x ktos@example.test @nick #tag",
		"İstanbul ǅ ﬁrma ＡＢＣ straße ΟΔΟΣ ὀδός мошенник ᎠᎡ 詐欺 מרמה ½kg e\u0301 \u0301 \u200d😀👨‍👩‍👧 ł đ ø ŁĐØ",
		"skin skina skinami nitro nitra boostem boosty trejdował trejdowała kody kodów token tokenów linkiem",
		"najnieprawdopodobniejszymi dziewięćdziesięciokilkuletniego konstantynopolitańczykowianeczka",
		"kot psa dom lis być jest był są ma a i o u w z się nie na do",
		strings.Repeat("ą", 40), strings.Join(slices.Repeat([]string{"podejrzana"}, 3), "\u00a0"),
	}
}
