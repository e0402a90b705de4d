// Package verdict decides what the person check says of a text that somebody pasted: one of seven
// values, with a reason. It is a pure function of what was typed (package paste) and of the entries
// that were found. People act on it, so no order of loops and no line of a template may decide
// whether somebody is accused or vouched for. Start with Find, then Decide.
//
// # The rules
//
// The first rule that holds decides (httpapi/CONTRACT.md#verdict):
//
//	1  accused, risk  an accused's id, the address of a listed server, the number or the address of a report
//	2  trusted        one literal id of trusted persons, alone or with the literal name of one of them
//	3  accused, risk  the text, or each line or part, is a literal name; one is an accused's and no trusted person's
//	4  trusted-name   the text is a literal name of trusted persons, or the address or number of their entry
//	5  caution        some reading of the text finds an entry
//	6  none           one literal id, one plain name, or both, and nothing was found
//	7  unchecked      everything else
//
// Whether somebody is accused or vouched for depends on rules 1 to 4 alone, and these read nothing into a
// text. Readings can only warn, so a better reading can be added at any time.
//
// A name of rule 6 also needs ranked search, which the caller asks ([Verdict.Words], [Verdict.Rank]).
//
// # The parts
//
//   - verdict.go: Verdict and its values.
//   - decide.go: Decide, the rules in their order.
//   - findings.go: what is listed below the verdict, and why the text is a warning.
//   - rank.go: what ranked search adds.
package verdict
