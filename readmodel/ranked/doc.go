// Package ranked answers ranked search (httpapi/CONTRACT.md#ranked) from an index of bleve on disk.
// Engine.Run makes the index and follows the feed of a model; Engine.Search asks it.
//
// A document is an entry that its list shows. Its texts are the terms of package terms, so bleve only splits them
// at spaces. Its filters are keywords. With every batch the index stores how far it has read the feed, and a
// restart goes on from there. The index may lag: a search takes every entry from the current view, and omits
// entries that no longer match.
//
// The index is a cache, and nothing in it is repaired. It is removed and rebuilt if it has failed, if the last
// process did not close it, or if it is of another feed or format. Until it is rebuilt there is no ranked
// search; everything else works.
//
// bleve retains the words of a deleted document until it merges the document's segment, which may never
// happen. So if a document was deleted, Engine makes another index beside the old one and replaces it within a day.
//
// Files: engine.go follows a model, index.go is bleve's index and its documents, search.go asks it,
// suggest.go finds other spellings.
package ranked
