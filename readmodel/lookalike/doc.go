// Package lookalike makes look-alike keys: two names that a person could take for each other have
// the same key (httpapi/CONTRACT.md#similar).
//
// A key is made in five steps: NFKC; drop invisible characters; take the skeleton of UTS #39, which
// replaces all characters that look alike by one of them; fold case; drop marks. There are two
// keys, because case folding and shapes disagree: a capital I looks like an l and folds to an i.
// Shape folds after the skeleton, so paypaI becomes paypal. Folded folds before it, so ILONA
// becomes ilona. KeysOf makes both.
//
// The contract fixes the steps and their order, so keys are not idempotent: M is m in the key
// Shape, and m looks like rn.
//
// # The forms of a name
//
// What is stored and what is asked are made by the same function, so they always meet:
//
//	form            function   made of            used for
//	text            -          -                  what people see
//	folded          (fold)     NFKC, case, space  lists and checks: substrings
//	literal         Literal    NFC, case, space   the person check: vouching and accusing by name
//	keys            KeysOf     see above          similar, imitates
//	joined keys     Joined     the keys           the person check: warning
//	core            Core       undecorated, keys  the person check: warning
//
// # Data
//
// testdata holds confusables.txt of UTS #39 and the section Default_Ignorable_Code_Point of
// DerivedCoreProperties.txt, both of Unicode 15.0.0, the version of the standard library and x/text
// under Go 1.26 (a test compares them). tables.txt was made from them, with a line for each prototype, and is embedded
// and read when the first key is made, in 2 ms. The libraries with such a table that we found are of
// older versions, or hold only a part.
//
// # Reach
//
// The tests of readmodel try twelve disguises on 1,000 names each, in both directions (the registry
// holds the name or the disguise): Cyrillic, Greek, full-width, mathematical letters, digits for
// letters, capital I for l, zero-width characters, combining marks, strokes (ł for l), ligatures,
// soft hyphens, bidi controls. All are found, as similar or, where NFKC alone undoes the disguise,
// as matches.
//
// Disguises that Unicode does not count as confusable are not found:
//
//   - digits for letters other than 0 for o and 1 for l or I: 3 for e, 4 for a, 5 for s, 7 for t,
//     and @ or $;
//   - 1 for a lower-case i;
//   - letters that only resemble each other: Greek κ, Cyrillic т, к and н in lower case;
//   - several letters for one, except rn for m, and ligatures;
//   - a name that needs one key for one letter and the other for the next: IG0R for igor;
//   - U+0345, the one mark that folds to a letter (an iota);
//   - white space that only the name in the registry has, or only the search.
package lookalike
