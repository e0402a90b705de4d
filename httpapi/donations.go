package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
)

// donationBody is the body of a donation's status (API contract, donations).
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

// donation answers GET /api/donate/status. Nothing of it is cached or logged: who knows a
// donation's id may see it, nobody else.
func (p *Public) donation(c *gin.Context) error {
	id, err := parseDonation(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	at, err := p.admitter.admit(c.Request)
	if err != nil {
		return err
	}
	p.positionHeaders(c.Writer.Header(), at) // of the 404 as well
	d, known := at.view.Donation(id)
	if !known {
		return errNotFound
	}
	return p.writeDonation(c, d)
}

func (p *Public) writeDonation(c *gin.Context, d events.Donation) error {
	body, err := json.Marshal(donationBody{
		d.DonationID, string(d.Status), d.Amount, d.Currency, d.Confirmations, d.RequiredConfirmations,
		stamp(d.CreatedAt), stamp(d.UpdatedAt),
	})
	if err != nil {
		return fmt.Errorf("donation: %w", err)
	}
	h := c.Writer.Header()
	p.fixed.common(h)
	h["Cache-Control"] = p.fixed.noStore
	c.Data(http.StatusOK, p.fixed.json[0], body)
	return nil
}

// parseDonation reads the donation id from a query string. It is a pure function.
func parseDonation(raw string) (string, error) {
	names, values := [1]string{"id"}, [1]value{}
	if err := scanQuery(raw, names[:], values[:]); err != nil {
		return "", err
	}
	p := params{names: names[:], values: values[:]}
	id := p.text(0, maxID)
	if p.err == nil && id == "" {
		return "", missing("id")
	}
	return id, p.err
}
