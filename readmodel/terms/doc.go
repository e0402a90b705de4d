// Package terms turns text into the terms that ranked search compares, so that a word is found in
// every inflection, with and without diacritics. Start with New, then Analyzer.Tokens.
//
// # From a text to terms
//
//  1. Tokens: runs of letters, marks and digits. Everything else separates them, except invisible
//     characters within a word. A token of letters and digits, such as a name with a year, also
//     yields its parts.
//  2. Folding: NFKC and full Unicode case folding, each token by itself, so that its position in
//     the text stays known.
//  3. Stop words (stop.txt) are dropped: words such as "się" that say nothing about a report, in all
//     their forms. "nie" stays: a person who did not pay is not one who paid. Verbs such as "mieć"
//     stay, too, but a query that has other words ignores them.
//  4. A handwritten table (words.txt) gives some words their terms.
//  5. The lexicon (lexicon.fst, package lexicon) gives other words their lemma: "sklep" for
//     sklepach. A word with several lemmas, such as "działa", gets all of them. The program in
//     generate made it from the Polish dictionary of sjp.pl; NOTICE.lexicon names the changes.
//  6. A word without diacritics, or one that neither knows, may be any word that differs from it in
//     diacritics alone: it gets the terms of all of them. "zadal" is zadał and żądał.
//  7. The remaining words are loan words and names. Their stem is guessed: the word without its
//     ending.
//
// A query is analyzed the same way.
//
// # Opposites
//
// "nie" at the beginning of a word stays, since it makes the opposite: neither the lexicon nor the
// guess removes it.
//
// # Why
//
// Endings alone do not determine the forms of a Polish word: a stemmer that uses endings (Stempel)
// matched half of the pairs of TestPairs, without the handwritten table. With the lexicon all match,
// with and without diacritics.
package terms
