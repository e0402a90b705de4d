// Package lookalike makes look-alike keys: two names that a person would take for each other have
// the same key (API contract, check: similar).
//
// A key is made in five steps: NFKC; characters that are shown as nothing dropped; the skeleton of
// UTS #39, which puts one character for all that look like it; case folded; marks dropped. There
// are two keys, because folding and shapes disagree: a capital I looks like an l and folds to an i.
// Shape folds after the skeleton, so that paypaI is paypal; Folded before it, so that ILONA is
// ilona. KeysOf makes both.
//
// The steps and their order are the contract's. So keys are not idempotent: M is m in the key
// Shape, and m looks like rn.
package lookalike
