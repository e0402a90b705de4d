package events

// Validate checks every bound of the API contract, events, and that the data is that of the
// type. The error is an *Error; nil means that Encode succeeds and Decode gives e back.
func Validate(e Event) error {
	if err := validate(&e); err != nil {
		return err
	}
	return nil
}

// validate is Validate with a typed nil, for callers that go on.
func validate(e *Event) *Error {
	if err := checkAttribute("id", e.ID, maxEventID); err != nil {
		return err
	}
	if err := checkAttribute("source", e.Source, maxSource); err != nil {
		return err
	}
	if !e.Time.IsZero() {
		if err := checkTime("time", e.Time); err != nil {
			return err
		}
	}
	if dataKind(e.Type) == unknownKind {
		return wrong("type", "unknown type "+quote(string(e.Type)))
	}
	if kindOf(e.Data) != dataKind(e.Type) {
		return wrong("data", "not the data of "+string(e.Type))
	}
	if entry, ok := e.Data.(Entry); ok && e.Type == TypeVerified && !entry.Verified {
		return inData("verified", "must be true in "+string(TypeVerified))
	}
	return checkData(e.Data)
}

func checkData(d Data) *Error {
	switch d := d.(type) {
	case Entry:
		return checkEntry(&d)
	case Delisting:
		return checkTarget(d.List, d.EntryID)
	case Views:
		if err := checkTarget(d.List, d.EntryID); err != nil {
			return err
		}
		return checkInteger("views", d.Views)
	case Donation:
		return checkDonation(&d)
	case DonationRemoval:
		return checkKey("donationId", d.DonationID)
	}
	return wrong("data", "missing")
}

func checkTarget(l List, entryID string) *Error {
	if !isList(l) {
		return inData("list", "must be scammers, servers or legit")
	}
	return checkKey("entryId", entryID)
}

func checkEntry(e *Entry) *Error {
	if err := checkTarget(e.List, e.EntryID); err != nil {
		return err
	}
	if err := checkText("chatId", e.ChatID, maxChatID); err != nil {
		return err
	}
	if err := checkText("name", e.Name, maxName); err != nil {
		return err
	}
	if len(e.Reason) > maxReasonText {
		return inData("reason", "longer than 20000 bytes")
	}
	if err := checkClean("data.reason", e.Reason); err != nil {
		return err
	}
	if err := checkProofs(e.Proofs); err != nil {
		return err
	}
	if err := checkText("reportId", e.ReportID, maxReportID); err != nil {
		return err
	}
	return checkTime("data.reportedAt", e.ReportedAt)
}

func checkProofs(p Proofs) *Error {
	if p.ID == "" {
		return nil
	}
	if p.Private {
		return inData("proofs.id", "must be null when the proofs are private")
	}
	return checkKey("proofs.id", p.ID)
}

func checkDonation(d *Donation) *Error {
	if err := checkKey("donationId", d.DonationID); err != nil {
		return err
	}
	switch {
	case !isDonationStatus(d.Status):
		return inData("status", "must be pending, confirming, confirmed, failed or expired")
	case !isAmount(d.Amount):
		return inData("amount", "must be digits, at most 18 before and 18 after a point")
	case !isCurrency(d.Currency):
		return inData("currency", "must be 2 to 10 of A-Z and 0-9")
	}
	if err := checkInteger("confirmations", d.Confirmations); err != nil {
		return err
	}
	if err := checkInteger("requiredConfirmations", d.RequiredConfirmations); err != nil {
		return err
	}
	if err := checkTime("data.createdAt", d.CreatedAt); err != nil {
		return err
	}
	return checkTime("data.updatedAt", d.UpdatedAt)
}
