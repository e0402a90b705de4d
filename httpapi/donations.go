package httpapi

import (
	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/respond"
)

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

// donation serves GET /api/donate/status. It is neither cached nor logged: only clients that know a
// donation's id may see it (httpapi/CONTRACT.md#donations).
func (p *Public) donation(c *gin.Context) (respond.Response, error) {
	id, err := parseDonation(c.Request.URL.RawQuery)
	if err != nil {
		return respond.Response{}, err
	}
	at, err := p.gate.admit(c.Request)
	if err != nil {
		return respond.Response{}, err
	}
	d, known := at.view.Donation(id)
	if !known {
		return at.withHeaders(respond.Response{}), errNotFound
	}
	a, err := respond.JSON(donationBody{
		d.DonationID, string(d.Status), d.Amount, d.Currency, d.Confirmations, d.RequiredConfirmations,
		body.Time(d.CreatedAt), body.Time(d.UpdatedAt),
	})
	return at.withHeaders(a), err
}
