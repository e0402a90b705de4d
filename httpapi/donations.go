package httpapi

import "github.com/gin-gonic/gin"

// donationBody is the body of a donation's status.
type donationBody struct {
	ID                    string `json:"id"`
	Status                string `json:"status"`
	Amount                string `json:"amount"`
	Currency              string `json:"currency"`
	Confirmations         int64  `json:"confirmations"`
	RequiredConfirmations int64  `json:"requiredConfirmations"`
	CreatedAt             string `json:"createdAt"`
	UpdatedAt             string `json:"updatedAt"`
}

// donation answers GET /api/donate/status. Nothing of it is cached or logged: whoever knows a
// donation's id may see it, and nobody else (httpapi/CONTRACT.md#donations).
func (p *Public) donation(c *gin.Context) (answer, error) {
	id, err := parseDonation(c.Request.URL.RawQuery)
	if err != nil {
		return answer{}, err
	}
	at, err := p.gate.admit(c.Request)
	if err != nil {
		return answer{}, err
	}
	d, known := at.view.Donation(id)
	if !known {
		return answer{at: at}, errNotFound
	}
	a, err := asJSON(donationBody{
		d.DonationID, string(d.Status), d.Amount, d.Currency, d.Confirmations, d.RequiredConfirmations,
		stamp(d.CreatedAt), stamp(d.UpdatedAt),
	})
	a.at = at
	return a, err
}
