package httpapi

import "example.org/registry/httpapi/internal/bounds"

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

// parseDonation reads the donation's id from a query string. It is a pure function.
func parseDonation(raw string) (id string, err error) {
	p := readParams(raw)
	id = p.readText("id", bounds.MaxID)
	if p.err == nil && id == "" {
		return "", missing("id")
	}
	return id, p.err
}

// serveDonation serves GET /api/donate/status (httpapi/CONTRACT.md#donations). Only clients that know a donation's id may see the
// donation, so no cache keeps the answer and no log has the id.
func serveDonation(x *exchange) error {
	id, err := parseDonation(x.query())
	if err != nil {
		return err
	}

	view, err := x.loadView()
	if err != nil {
		return err
	}

	d, known := view.Donation(id)
	if !known {
		return errNotFound
	}
	return x.sendJSON(policy{}, "", donationBody{
		ID: d.DonationID, Status: string(d.Status), Amount: d.Amount, Currency: d.Currency,
		Confirmations: d.Confirmations, RequiredConfirmations: d.RequiredConfirmations,
		CreatedAt: formatTime(d.CreatedAt), UpdatedAt: formatTime(d.UpdatedAt),
	})
}
