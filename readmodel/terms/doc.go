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
//  4. The table by hand (words.txt) gives its words their terms.
//  5. The lexicon (lexicon.fst, package lexicon) gives other words their lemma, such as "sklep" for
//     sklepach. A word with several lemmas, such as "działa", gets all of them. The program in
//     generate made it from the Polish dictionary of sjp.pl; NOTICE.lexicon says what it changed.
//  6. A word that neither knows is taken for one that was typed without diacritics: it gets the
//     terms of all the words that it may be. "zadal" is zadał and żądał.
//  7. What is left are loan words and names. Their stem is guessed: the word without its ending.
//
// A question is analysed likewise. In it every word without diacritics means all the words that it
// may be, known or not ([Analyzer.Meant]). [Token.Plain] is what an index keeps beside the terms,
// to find words that nobody knows with other diacritics.
//
// # Opposites
//
// A word that begins with "nie" is another word: neither the lexicon nor the guess takes it off.
//
// # Why
//
// Endings alone do not tell the forms of a Polish word. A stemmer that goes by them (Stempel)
// found, without the table, 54 % of the pairs of a form asked and a form written of the field's
// nouns, 45 % of its verbs, 68 % of its adjectives and 36 % of its slang. With the dictionary all
// pairs of TestPairs are found, with and without diacritics.
package terms
