// Package terms turns text into the terms that ranked search compares, so that a word is found in every inflection,
// with and without diacritics.
//
// # What becomes of a text
//
//  1. Tokens: runs of letters, marks and digits. Everything else parts them. A token of letters and digits, such as a
//     name with a year, also gives its parts.
//  2. Folding: NFKC and full Unicode case folding, each token by itself, so that its place in the text stays known.
//  3. Stop words go: words such as "się" that say nothing about a report. "nie" stays: who did not pay is not who paid.
//  4. The table (words.txt) gives the field's own words their stem.
//  5. Other words of Polish letters are stemmed by Stempel (Andrzej Białecki's stemmer, as bleve carries it).
//  6. Diacritics go, from the stem, where they would keep apart what belongs together.
//
// A word that its reader typed without diacritics ("oszukal") has another stem, or none: Stempel knows words as they
// are spelled. [Token.Plain] is what an index keeps beside the terms to find the right ones. That helps where some text has the
// very form that was meant. What is left out most is the ogonek at the end of accusatives and verbs ("nagrode", "kradna"):
// [Analyzer.Ogonek] puts it back, so that those find texts with other forms.
//
// # Why a table
//
// Stempel was trained on a dictionary of Polish and unifies most of what reports are written in: oszukał, oszukała and
// oszukali are one term. It knows no loan word, and makes each form of one another word: discord becomes discordy,
// token tokenć, kody kyć. The table names those words of the field with their forms; it comes first.
//
// Diacritics are not folded before the stemmer, which was trained with them.
package terms
