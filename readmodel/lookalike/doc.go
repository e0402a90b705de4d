// Package lookalike makes look-alike keys: two names that a person could take for each other have
// the same key (httpapi/CONTRACT.md#similar). Start with KeysOf.
//
// A key is made in five steps: NFKC; drop invisible characters; take the skeleton of UTS #39, which
// replaces characters by their prototypes; fold case; drop marks. There are two
// keys, because case folding and shapes disagree: a capital I looks like an l and folds to an i.
// Shape folds after the skeleton, so paypaI becomes paypal. Folded folds before it, so ILONA
// becomes ilona. Make no key of a key: the key may change again, as Shape turns M into m, and m into rn.
//
// A name is stored and looked up in one of these forms. The same function makes the stored and the asked form:
//
//	form            function   made of            used for
//	folded          (fold)     NFKC, case, space  lists and checks: substrings
//	literal         Literal    NFC, case, space   the person check: vouching and accusing by name
//	keys            KeysOf     see above          similar, imitates
//	joined keys     Joined     the keys           the person check: warning
//	core            Core       undecorated, keys  the person check: warning
//
// The embedded confusables.txt of UTS #39 is of Unicode 15.0.0, as are the standard library and x/text under
// Go 1.26 (a test compares them). The Go libraries that we found have an older table, or only a part of it.
//
// TestDisguises of readmodel tries twelve disguises on 1,000 names each. Some disguises are not found, since
// Unicode does not list them as confusable: digits for letters, other than 0 for o and 1 for l or I; letters that
// only resemble each other, such as Greek κ; several letters for one, except rn for m and ligatures. Nor is a
// name found that needs the key Shape for one letter and Folded for another, such as IG0R for igor.
//
// Files: key.go, name.go (forms of names), tables.go.
package lookalike
