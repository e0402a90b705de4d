package projector

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
)

// Bounds of the requests that wait for the one goroutine that answers them. Further requests are dropped,
// and their senders time out.
const (
	maxRequests     = 256
	maxRequestBytes = 16 << 20
)

// validation is the reply to a request.
type validation struct {
	Valid   bool   `json:"valid"`
	Subject string `json:"subject,omitempty"`
	Known   int64  `json:"known,omitempty"` // the greatest revision known of the subject
	Stale   bool   `json:"stale,omitempty"` // Known is greater than the event's revision
	Reason  string `json:"reason,omitempty"`
}

// ServeValidation answers requests on events.ValidateSubject until stop is called. A reply says whether a
// Projector, which has the same decoder, would reject an event. ServeValidation also refuses a revision far ahead
// of the clock. It needs no stream, and nc need not be up. The processes that call it share the requests.
// known returns the greatest revision known of a subject, or 0; it may be nil.
func ServeValidation(nc *nats.Conn, known func(events.Subject) int64, log *slog.Logger) (stop func(), err error) {
	d := &decoder{renderer: readmodel.NewRenderer(), log: log}
	service, err := micro.AddService(nc, micro.Config{
		Name: events.ValidateSubject, Version: "1.0.0",
		Description: "Says whether the registry would accept an event, and why not. Changes nothing.",
	})
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", events.ValidateSubject, err)
	}

	stop = func() { _ = service.Stop() } // its error means that a lost connection has ended the service before

	err = service.AddEndpoint("validate", micro.HandlerFunc(func(r micro.Request) {
		if err := r.RespondJSON(d.validate(r.Data(), nats.Header(r.Headers()), known)); err != nil {
			log.Debug("reply not sent", "service", events.ValidateSubject, "error", err) // the sender asks again
		}
	}), micro.WithEndpointSubject(events.ValidateSubject), micro.WithEndpointPendingLimits(maxRequests, maxRequestBytes))
	if err != nil {
		stop()
		return nil, fmt.Errorf("service %s: %w", events.ValidateSubject, err)
	}
	return stop, nil
}

// validate returns the verdict on an event, as if it were published on the subject that the header names.
// Without that header, the subject is the event's own.
func (d *decoder) validate(payload []byte, header nats.Header, known func(events.Subject) int64) validation {
	m := stream.Message{Subject: header.Get(events.HeaderSubject), Data: payload, Header: header}
	_, hasSubject := header[events.HeaderSubject]

	// Without a subject in the header, the payload must give one.
	e, err := events.Decode(payload)
	if !hasSubject && err != nil {
		if events.IsBinaryMode(header) {
			err = events.ErrBinaryMode
		}
		return validation{Reason: err.Error()}
	}
	if !hasSubject {
		m.Subject = e.Data.Subject().String()
	}

	// If the header names a subject, an invalid payload is refused only here.
	if result := d.decode(&m); result.err != nil {
		return validation{Reason: result.err.Error()}
	}

	v := validation{Valid: true, Subject: m.Subject}
	if known != nil {
		v.Known = known(e.Data.Subject())
	}
	if err := events.CheckRevision(e.Data, v.Known, time.Now()); err != nil {
		return validation{Reason: err.Error()}
	}

	v.Stale = v.Known > events.Revision(e.Data)
	return v
}
