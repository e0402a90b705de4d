package readmodel

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Public is what readers may know of an entry: the members of the seed's ListEntry, and whether
// there are private proofs, which the lists can be filtered by.
type Public struct {
	ID       string  `json:"_id"`
	Name     string  `json:"name"`
	ChatID   string  `json:"id"`
	DescHTML string  `json:"descHtml"`
	Verified bool    `json:"verified"`
	ProofsID *string `json:"proofsId"`
	ReportID string  `json:"reportId"`

	PrivateProofs bool `json:"-"`
}

// ChatID is the chat-platform id of the entry.
func (r *Row) ChatID() string { return r.chatID() }

// Verified says whether the entry is verified.
func (r *Row) Verified() bool { return r.filter&bitVerified != 0 }

// Named says whether search is the entry's name or chat id, as checks compare them.
func (r *Row) Named(search string) bool {
	rank, ok := r.rank(Fold(search))
	return ok && rank <= rankNameEqual
}

// Public reads the row's JSON, for those who want its parts: pages of the site. It takes microseconds;
// who wants the JSON itself takes that. Its error would be a row that this program did not write.
func (r *Row) Public() (Public, error) {
	p := Public{PrivateProofs: r.filter&bitPrivate != 0}
	if err := json.Unmarshal([]byte(r.JSON()), &p); err != nil {
		return p, fmt.Errorf("entry %s: %w", r.ID(), err)
	}
	return p, nil
}
