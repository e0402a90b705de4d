// Package lookalike makes look-alike keys: two names that a person could take for each other have
// the same key (httpapi/CONTRACT.md#similar). Start with KeysOf.
//
// A key is made in five steps: NFKC; drop invisible characters; take the skeleton of UTS #39, which
// replaces characters by their prototypes; fold case; drop marks. There are two
// keys, because case folding and shapes disagree: a capital I looks like an l and folds to an i.
// Shape folds after the skeleton, so paypaI becomes paypal. Folded folds before it, so ILONA
// becomes ilona. The key of a key may be another one: Shape makes m of M, and rn of m.
//
// The same function makes a form for storing a name and for looking it up, so that both are equal:
//
//	form            function   made of            used for
//	folded          (fold)     NFKC, case, space  lists and checks: substrings
//	literal         Literal    NFC, case, space   the person check: vouching and accusing by name
//	keys            KeysOf     see above          similar, imitates
//	joined keys     Joined     the keys           the person check: warning
//	core            Core       undecorated, keys  the person check: warning
//
// confusables.txt of UTS #39 is of Unicode 15.0.0, as are the standard library and x/text under
// Go 1.26 (a test compares them). The libraries with such a table that we found are of older versions,
// or hold only a part.
//
// TestDisguises of readmodel tries twelve disguises on 1,000 names each. Unicode does not count these as
// confusable, so they are not found: digits for letters other than 0 for o and 1 for l or I; letters that
// only resemble each other, as Greek κ; several letters for one, except rn for m, and ligatures; a name
// that needs one key for one letter and the other for the next, as IG0R for igor.
//
// Files: key.go, name.go (forms of names), tables.go.
package lookalike
