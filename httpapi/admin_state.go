package httpapi

// pageState is how things stand, in plain words: one sentence, what is behind it, and what an operator
// is to do. Level is good, warn or bad.
type pageState struct {
	Level, Sentence string
	Details         []string
	Advice          string
}

// judge reads the state as an operator would. unfit is why nothing is answered, or nil. The order is
// that of importance.
func judge(state State, unfit error, p Projection) pageState {
	s := pageState{Level: "good", Sentence: "In order: lists and checks are answered, and nothing is missing."}
	if p.LastError != nil && *p.LastError != "" {
		s.Details = []string{*p.LastError}
	}
	switch {
	case state.Stopping:
		s.Level, s.Sentence = "warn", "Stopping: requests that are here already are answered to the end."
	case state.Frozen && unfit != nil:
		s.Level, s.Sentence, s.Advice = "bad", "Frozen, and lists and checks are answered with 503.", thaw
	case state.Frozen:
		s.Level, s.Sentence, s.Advice = "bad", "Frozen: the last good state is served, and nothing is applied.", thaw
	case unfit != nil:
		s.Level, s.Sentence, s.Advice = "bad", "Lists and checks are answered with 503.",
			"if it is catching up, wait; else mend what is named here. /readyz says the same."
	case p.LastError != nil:
		s.Level, s.Sentence = "bad", "Lists and checks are answered, but something is wrong."
	case p.Rebuilding != nil:
		s.Level, s.Sentence = "warn", "Rebuilding beside the present content, which is served meanwhile."
	case len(p.SubjectsWithoutValidEvent) > 0:
		s.Level, s.Sentence = "warn", "Lists and checks are answered, but a rebuild would lose the subjects listed below."
	case p.LagSeconds > behind:
		s.Level, s.Sentence = "warn", "Lists and checks are answered, but events are waiting to be applied."
	}
	return s
}

// behind is from how many seconds on a lag is worth saying in the headline.
const behind = 5

// thaw is what ends a freeze (API contract, operators).
const thaw = "if the stream only looked shorter, it goes on by itself once the stream is back as it was. " +
	"If this server was pointed at a wrong stream, stop it and mend --nats-url, --stream or --data-dir. " +
	"If the stream was replaced on purpose, run: registry rebuild --accept-stream. Until then nothing is lost and nothing is applied."
