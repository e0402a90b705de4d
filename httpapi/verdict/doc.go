// Package verdict decides what the person check says of a text that somebody pasted: one of seven
// values, with a reason. It is a pure function of what was typed (package paste) and of the entries
// that were found. People act on it, so no order of loops and no line of a template may decide
// whether somebody is accused or vouched for. Start with Find, then Decide.
//
// # The rules
//
// A typed name can be near an entry's in three ways ([Nearness]): it is the same; it is dressed,
// with something around it or in letters of another width; or it only looks like it. The first rule
// that holds decides.
//
//	ids typed                       names                            value         reason
//	one is an accused's             any                              accused, risk ByID
//	all are trusted persons'        theirs, or nobody's              trusted       ByID
//	all are trusted persons'        one is another listed entry's    caution       OtherName
//	one is on no list               one is near an accused's         caution       OtherAccount
//	one is on no list, one trusted  any other                        caution       OtherID
//	one is on no list               one is near a trusted person's   caution       NotTheirs
//	none                            each decides for itself, as below, and the gravest counts
//
// Digits that only may be an id, because of what stands around them, count like a typed id if they
// are an accused's. If they are a trusted person's, they are a caution (MaybeID).
//
// What a name decides by itself:
//
//	it is                                                              value          reason
//	an accused's, same or dressed; a trusted person's at least as near caution        Shared
//	an accused's, same or dressed                                      accused, risk  ByName
//	a trusted person's, the same                                       trusted-name   ByName
//	like an accused's                                                  caution        LikeAccused
//	a trusted person's, dressed, or like one's                         caution        LikeTrusted
//	nobody's, but an @word in it is somebody's                         as that word alone, but never trusted-name
//	nobody's, but another word of it is somebody's                     caution        InSentence
//	nobody's                                                           none           Nobody
//
// If nothing was found, and the text is what the registry does not keep or more than it looks at,
// the value is unchecked instead of none. If the value would vouch for somebody, and the text is
// more than the registry looks at, it is caution (TooMany).
//
// A value is accused if an entry that decides is verified, and risk if none is. Of several names
// the gravest counts, in this order: accused, caution, risk, trusted-name, unchecked, none. An
// accused id decides even if a name is graver, since an id is one account and a name is anybody's.
//
// # Promises
//
//   - Trusted only if ids were typed and each is a trusted person's; so never for a name, and never
//     for a reading that was not typed.
//   - Accused and risk only if an accused entry has the id or the name.
//   - Never none, nor trusted, if an id or a name that was typed is an accused's.
//   - The order in which things were typed, and in which entries were found, decides nothing.
//   - Noise around a text never turns a warning into an all-clear, as long as all of the text is
//     looked at.
//
// # Why
//
// A name is whatever its bearer types: anybody can take a trusted person's. So only an id can
// vouch. A reading that was made of the text can warn and accuse, but not vouch: whoever tidies
// "maja<zero width>1997" up to maja1997 and then vouches for it does the impostor's work.
//
// # The parts
//
//   - verdict.go: Decide, the rules in their order.
//   - near.go: how near a name is to an entry's. find.go: Find, who may be meant.
package verdict
