package httpapi

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

// donation serves GET /api/donate/status. It is neither cached nor logged: only clients that know a donation's id may see it
// (httpapi/CONTRACT.md#donations).
func (p *Public) donation(x *exchange) error {
	id, err := parseDonation(x.query())
	if err != nil {
		return err
	}
	if err := x.loadView(); err != nil {
		return err
	}

	d, known := x.view.Donation(id)
	if !known {
		return errNotFound
	}
	return x.sendJSON(policy{}, "", donationBody{
		d.DonationID, string(d.Status), d.Amount, d.Currency, d.Confirmations, d.RequiredConfirmations,
		FormatTime(d.CreatedAt), FormatTime(d.UpdatedAt),
	})
}
