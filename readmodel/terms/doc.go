// Package terms turns text into the terms that ranked search compares, so that a word is found in every inflection,
// with and without diacritics. Start with New, then Analyzer.Tokens. A query is analyzed the same way as a text:
//
//  1. Tokens: runs of letters, marks and digits. Invisible characters within a word do not end it. A
//     token of letters and digits, such as a name with a year, also yields its parts.
//  2. Folding: NFKC and full case folding, each token by itself, so that its position stays known.
//  3. Stop words (stop.txt) such as "się" are dropped if a text has other words. "nie" (not) is no stop
//     word, since it reverses the meaning.
//  4. A handwritten table (words.txt) gives some words their terms.
//  5. The lexicon (lexicon.fst) gives other words their lemmas: "sklep" for sklepach. A "nie" at the
//     beginning of a word is kept, for the same reason.
//  6. A word without diacritics gets the terms of all words that differ from it in diacritics alone:
//     "zadal" is zadał and żądał. So does an unknown word with diacritics.
//  7. Any other word gets a guessed stem. Most of these words are loan words and names.
//
// The endings of a Polish word are not enough to find its other forms: Stempel, a stemmer that uses
// endings, matched half of the pairs of TestPairs. With the lexicon all match.
//
// Files: terms.go (tokens and their terms), lexicon.go, guess.go. NOTICE.lexicon says how lexicon.fst was made.
package terms
