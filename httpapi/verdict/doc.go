// Package verdict decides what the person check says of a text that somebody pasted: one of seven
// values, with a reason. It is a pure function of what was typed (package paste) and of the entries
// that were found. People act on it, so no order of loops and no line of a template may decide
// whether somebody is accused or vouched for. Start with Find, then Decide.
//
// # The rules
//
// A verdict accounts for the whole text: what is neither an id, nor a name that somebody has, nor
// of a kind that is not checked, is filler. A typed name can be near an entry's in three ways
// ([Nearness]): it is the same; it is dressed, with something around either of them or in letters of
// another width; or it only looks like it. The first rule that holds decides.
//
//	ids typed                       beside them                              value         reason
//	one is an accused's             any                                      accused, risk ByID
//	all are trusted persons'        the name of another listed entry         caution       OtherName
//	all are trusted persons'        digits that may be another id            caution       MaybeID
//	all are trusted persons'        what is not checked                      caution       Beside
//	all are trusted persons'        1-3 letters that are no word, nor theirs caution       Beside
//	all are trusted persons'        more than is looked at                   caution       TooMany
//	all are trusted persons'        a name that only looks like theirs       caution       LikeTrusted
//	all are trusted persons'        theirs with more letters, or fewer       caution       LikeTrusted
//	all are trusted persons'        a word that may be another's name        caution       InSentence
//	all are trusted persons'        their own names and filler               trusted       ByID
//	one is on no list               a name near an accused's                 caution       OtherAccount
//	one is on no list               a trusted person's id                    caution       OtherID
//	one is on no list               a name near a trusted person's           caution       NotTheirs
//	none                            each name decides for itself, and the gravest counts
//
// Digits that only may be an id, and the number of a report or of an entry, count like a typed id
// if they are an accused's. If they are a trusted person's, they are a caution (MaybeID).
//
// What a name decides by itself:
//
//	it is                                                              value          reason
//	an accused's, same or dressed; a trusted person's at least as near caution        Shared
//	an accused's, same or dressed                                      accused, risk  ByName
//	a trusted person's, the same                                       trusted-name   ByName
//	like an accused's                                                  caution        LikeAccused
//	a trusted person's, dressed, or like one's                         caution        LikeTrusted
//	a run of words in a longer text, and somebody's                    caution        InSentence
//	nobody's                                                           none           Nobody
//
// If somebody has a longer name, the words within it do not count. An accused's name counts also
// within the name of a trusted person whose id was not typed, and in a label before any name.
//
// Of a longer text, a word in lower case that the dictionary knows, a number and a label are no
// names. If one is the name of an accused, or of anybody but the persons whose ids were typed, the
// verdict is not trusted; if it looks like a trusted person's and is not, not trusted-name; if it is
// anybody's, not none.
//
// If nothing was found, the value is unchecked instead of none where there is more than is looked at
// (TooMany), something that no list has (Unknown), or a sentence without an id (Sentence).
//
// A value is accused if an entry that decides is verified, and risk if none is. Of several names
// the gravest counts, in this order: accused, caution, risk, trusted-name, unchecked, none. An
// accused id decides even if a name is graver, since an id is one account and a name is anybody's.
//
// # Promises
//
//   - Trusted only if ids were typed, each is a trusted person's, and nothing else is left but their
//     own names and filler.
//   - Accused and risk only if an accused entry has the id or the name.
//   - None only if everything was looked up.
//   - More text never turns a warning into trusted, trusted-name or none, but that an id says whose
//     account a shared name means.
//   - The order in which things were typed, and in which entries were found, decides nothing.
//
// # Why
//
// A name is whatever its bearer types: anybody can take a trusted person's. So only an id can
// vouch. A reading that was made of the text can warn and accuse, but not vouch: a person who tidies
// "maja<zero width>1997" up to maja1997 and then vouches for it does the impostor's work.
//
// # The parts
//
//   - verdict.go: Decide, the rules in their order.
//   - find.go: Find, who may be meant, and how near each is.
package verdict
