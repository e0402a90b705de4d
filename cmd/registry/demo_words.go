package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"example.org/registry/events"
)

//go:embed demo.json
var demoJSON []byte

// demoWords is demo.json: invented names and texts. Words in braces are replaced from Fill.
type demoWords struct {
	Nicks       nickWords           `json:"nicks"`
	Servers     serverWords         `json:"servers"`
	Fill        map[string][]string `json:"fill"`
	Scams       []scamKind          `json:"scams"`
	ServerTexts []string            `json:"serverTexts"`
	LegitTexts  []string            `json:"legitTexts"`
	Endings     []string            `json:"endings"`
}

type nickWords struct {
	First  []string `json:"first"`
	Second []string `json:"second"`
	Plain  []string `json:"plain"`
}

type serverWords struct {
	Lead []string `json:"lead"`
	What []string `json:"what"`
	Tail []string `json:"tail"`
}

// scamKind is one way of cheating; Weight says how common it is among the others.
type scamKind struct {
	Title  string   `json:"title"`
	Weight int      `json:"weight"`
	Texts  []string `json:"texts"`
}

func readDemoWords() (demoWords, error) {
	var w demoWords
	if err := json.Unmarshal(demoJSON, &w); err != nil {
		return w, fmt.Errorf("demonstration texts: %w", err)
	}
	return w, nil
}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// scam writes the reason of a report: a heading, what happened, and often a closing remark.
func (w *demoWords) scam(rng *rand.Rand) string {
	kind := w.kind(rng)
	text := "**" + kind.Title + ".** " + w.fill(rng, pick(rng, kind.Texts))
	if end := w.fill(rng, pick(rng, w.Endings)); end != "" {
		text += "\n\n" + end
	}
	return text
}

// kind draws a way of cheating by weight.
func (w *demoWords) kind(rng *rand.Rand) scamKind {
	total := 0
	for _, k := range w.Scams {
		total += k.Weight
	}
	n := rng.IntN(total)
	for _, k := range w.Scams {
		if n -= k.Weight; n < 0 {
			return k
		}
	}
	return w.Scams[0]
}

// fill replaces every {word} of text by one of its fillings.
func (w *demoWords) fill(rng *rand.Rand, text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		word, after, _ := strings.Cut(rest, "}")
		out.WriteString(pick(rng, w.Fill[word]))
		text = after
	}
}

// nick invents a nickname in one of the shapes people choose.
func (d *demo) nick() string {
	n := d.words.Nicks
	first, second, plain := pick(d.rng, n.First), pick(d.rng, n.Second), pick(d.rng, n.Plain)
	switch d.rng.IntN(6) {
	case 0:
		return first + " " + second
	case 1:
		return strings.ToLower(first + "." + second)
	case 2:
		return fmt.Sprintf("%s%d", plain, 1990+d.rng.IntN(34))
	case 3:
		return "xX_" + plain + "_Xx"
	case 4:
		return fmt.Sprintf("%s_%s%02d", first, second, d.rng.IntN(100))
	}
	return plain + second
}

func (d *demo) serverName() string {
	s := d.words.Servers
	return pick(d.rng, s.Lead) + " " + pick(d.rng, s.What) + " " + pick(d.rng, s.Tail)
}

// donation adds the i-th donation. Its id is fixed, long and random-looking, as the ids of real
// donations must be; the README shows the first one.
func (d *demo) donation(i int) {
	created := d.now.Add(-time.Duration(demoDonations-i) * 31 * time.Hour)
	state := pick(d.rng, []events.DonationStatus{
		events.DonationConfirmed, events.DonationConfirmed, events.DonationPending,
		events.DonationConfirming, events.DonationFailed, events.DonationExpired,
	})
	needed := int64(6)
	done := map[events.DonationStatus]int64{events.DonationConfirmed: needed, events.DonationConfirming: 2}[state]
	updated := created.Add(time.Duration(1+d.rng.IntN(90)) * time.Minute)
	d.add(events.TypeDonationUpdated, updated, events.Donation{
		DonationID:            d.donationID(),
		Status:                state,
		Amount:                fmt.Sprintf("0.%05d", 20+d.rng.IntN(900)),
		Currency:              pick(d.rng, []string{"BTC", "ETH", "LTC"}),
		Confirmations:         done,
		RequiredConfirmations: needed,
		CreatedAt:             created,
		UpdatedAt:             updated,
	})
}

// donationID is 26 characters of the demonstration's own random sequence.
func (d *demo) donationID() string {
	const letters = "abcdefghijkmnpqrstuvwxyz23456789"
	id := make([]byte, 26)
	for i := range id {
		id[i] = letters[d.rng.IntN(len(letters))]
	}
	return string(id)
}
