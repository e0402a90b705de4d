package projector

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
)

// Bounds of waiting requests. One goroutine answers them; further requests are dropped, and their
// senders time out.
const (
	maxRequests     = 256
	maxRequestBytes = 16 << 20
)

// validation is the reply to a request.
type validation struct {
	Valid   bool   `json:"valid"`
	Subject string `json:"subject,omitempty"`
	Known   int64  `json:"known,omitempty"` // the greatest revision known of the subject
	Stale   bool   `json:"stale,omitempty"` // it is greater than the event's
	Reason  string `json:"reason,omitempty"`
}

// ServeValidation answers requests on events.ValidateSubject until stop is called: whether a
// Projector would apply or reject an event, by the same decoder. It also refuses a revision far
// ahead of the clock. It needs no stream, and nc need not be up. Every process of a stream calls it
// once; they share the requests. known returns the greatest revision known of a subject, or 0.
func ServeValidation(nc *nats.Conn, known func(events.Subject) int64, log *slog.Logger) (stop func(), err error) {
	d := &decoder{renderer: readmodel.NewRenderer(), log: log}
	logRefusal(nc, log)
	service, err := micro.AddService(nc, micro.Config{
		Name: events.ValidateSubject, Version: "1.0.0",
		Description: "Says whether the registry would accept an event, and why not. Changes nothing.",
	})
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", events.ValidateSubject, err)
	}
	stop = func() { _ = service.Stop() } // a lost connection has ended it already

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

// logRefusal logs, once, that this user of the broker may not answer requests. The broker reports
// that after each reconnect, but the micro library hides it.
func logRefusal(nc *nats.Conn, log *slog.Logger) {
	var once sync.Once
	earlier := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		refused := errors.Is(err, nats.ErrPermissionViolation)
		if refused && strings.Contains(err.Error(), `Subscription to "`+events.ValidateSubject+`"`) {
			once.Do(func() {
				log.Warn("this server does not answer on "+events.ValidateSubject+"; let its user of the broker subscribe to it and "+
					"respond, as in deploy/nats/accounts.conf", "error", err)
			})
			return
		}
		if refused && strings.Contains(err.Error(), `Subscription to "`+micro.APIPrefix+`.`) {
			return
		}
		if earlier != nil {
			earlier(nc, sub, err)
		}
	})
}

// validate returns the verdict on an event, on the subject in the header, or else on its own
// subject.
func (d *decoder) validate(payload []byte, header nats.Header, known func(events.Subject) int64) validation {
	e, err := events.Decode(payload)
	m := stream.Message{Subject: header.Get(events.HeaderSubject), Data: payload, Header: header}
	if _, given := header[events.HeaderSubject]; !given {
		if err != nil && events.IsBinaryMode(header) {
			err = events.ErrBinaryMode
		}
		if err != nil {
			return validation{Reason: err.Error()}
		}
		m.Subject = e.Data.Subject().String()
	}
	if is := d.decode(&m); is.err != nil {
		return validation{Reason: is.err.Error()}
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
