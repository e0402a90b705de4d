package events

import "github.com/go-json-experiment/json/jsontext"

// data reads the data of an event; bounds are checked afterwards, by checkData.
func (r reader) data(k kind, to *Data) error {
	switch k {
	case entryKind:
		return r.entry(to)
	case delistingKind:
		return r.delisting(to)
	case viewsKind:
		return r.views(to)
	case donationKind:
		return r.donation(to)
	case removalKind:
		return r.removal(to)
	}
	return wrong("type", "unknown")
}

func (r reader) entry(to *Data) error {
	var e Entry
	names := []string{"list", "entryId", "chatId", "name", "reason", "verified", "proofs", "reportId", "reportedAt"}
	err := r.object("data", names, len(names), func(i int) error {
		switch i {
		case 0:
			return r.list(&e.List)
		case 1:
			return r.text("data.entryId", &e.EntryID)
		case 2:
			return r.text("data.chatId", &e.ChatID)
		case 3:
			return r.text("data.name", &e.Name)
		case 4:
			return r.text("data.reason", &e.Reason)
		case 5:
			return r.flag("data.verified", &e.Verified)
		case 6:
			return r.proofs(&e.Proofs)
		case 7:
			return r.text("data.reportId", &e.ReportID)
		}
		return r.time("data.reportedAt", &e.ReportedAt)
	})
	*to = e
	return err
}

func (r reader) proofs(p *Proofs) error {
	return r.object("data.proofs", []string{"id", "private"}, 2, func(i int) error {
		if i == 1 {
			return r.flag("data.proofs.private", &p.Private)
		}
		if r.dec.PeekKind() == jsontext.KindNull {
			return r.dec.SkipValue()
		}
		if err := r.text("data.proofs.id", &p.ID); err != nil {
			return err
		}
		if p.ID == "" { // would be taken for null from here on
			return checkKey("proofs.id", "")
		}
		return nil
	})
}

func (r reader) delisting(to *Data) error {
	var d Delisting
	err := r.object("data", []string{"list", "entryId"}, 2, func(i int) error {
		if i == 0 {
			return r.list(&d.List)
		}
		return r.text("data.entryId", &d.EntryID)
	})
	*to = d
	return err
}

func (r reader) views(to *Data) error {
	var v Views
	err := r.object("data", []string{"list", "entryId", "views"}, 3, func(i int) error {
		switch i {
		case 0:
			return r.list(&v.List)
		case 1:
			return r.text("data.entryId", &v.EntryID)
		}
		return r.integer("data.views", &v.Views)
	})
	*to = v
	return err
}

func (r reader) donation(to *Data) error {
	var d Donation
	names := []string{"donationId", "status", "amount", "currency", "confirmations", "requiredConfirmations", "createdAt", "updatedAt"}
	err := r.object("data", names, len(names), func(i int) error {
		switch i {
		case 0:
			return r.text("data.donationId", &d.DonationID)
		case 1:
			return r.text("data.status", (*string)(&d.Status))
		case 2:
			return r.text("data.amount", &d.Amount)
		case 3:
			return r.text("data.currency", &d.Currency)
		case 4:
			return r.integer("data.confirmations", &d.Confirmations)
		case 5:
			return r.integer("data.requiredConfirmations", &d.RequiredConfirmations)
		case 6:
			return r.time("data.createdAt", &d.CreatedAt)
		}
		return r.time("data.updatedAt", &d.UpdatedAt)
	})
	*to = d
	return err
}

func (r reader) removal(to *Data) error {
	var d DonationRemoval
	err := r.object("data", []string{"donationId"}, 1, func(int) error {
		return r.text("data.donationId", &d.DonationID)
	})
	*to = d
	return err
}
