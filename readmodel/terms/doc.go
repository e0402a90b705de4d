// Package terms turns text into the terms that ranked search compares, so that a word is found in
// every inflection, with and without diacritics. Start with New, then Analyzer.Tokens.
//
// # What becomes of a text
//
//  1. Tokens: runs of letters, marks and digits. Everything else parts them, but for invisible
//     characters within a word. A token of letters and digits, such as a name with a year, also
//     gives its parts.
//  2. Folding: NFKC and full Unicode case folding, each token by itself, so that its place in the
//     text stays known.
//  3. Stop words go (stop.txt): words such as "się" that say nothing about a report, in all their
//     forms. "nie" stays: who did not pay is not who paid. Verbs such as "mieć" stay, too, but a
//     question that has other words does without them.
//  4. A handwritten table (words.txt) gives some words their terms.
//  5. The lexicon (lexicon.fst, package lexicon) gives other words their lemma: "sklep" for
//     sklepach. A word with several lemmas, such as "działa", gets all of them. The program in
//     generate made it from the Polish dictionary of sjp.pl; NOTICE.lexicon says what it changed.
//  6. A word that neither knows may have been typed without diacritics: it gets the terms of all
//     the words that it may be. "zadal" is zadał and żądał.
//  7. What is left are loan words and names. Their stem is guessed: the word without its ending.
//
// A question is analyzed the same way, except that every word without diacritics means all the
// words that it may be, known or not ([Analyzer.Meant]). An index keeps [Token.Plain] beside the
// terms, to find words that neither table nor lexicon knows whatever their diacritics.
//
// # Opposites
//
// "nie" at the beginning of a word stays, since it makes the opposite: neither the lexicon nor the
// guess takes it off.
//
// # Why
//
// Endings alone do not tell the forms of a Polish word. Given a form that is asked and one that is
// written, a stemmer that goes by endings (Stempel) matched 54% of the pairs of the field's nouns,
// 45% of its verbs, 68% of its adjectives and 36% of its slang, without the handwritten table.
// With the lexicon all pairs of TestPairs match, with and without diacritics.
package terms
