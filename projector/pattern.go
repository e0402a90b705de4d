package projector

import (
	"errors"
	"strings"
)

// CheckPattern says what is wrong with a subject that may have the broker's wildcards: a token * is any one token, > at the end is
// one or more.
func CheckPattern(pattern string) error {
	tokens := strings.Split(pattern, ".")
	for i, token := range tokens {
		switch {
		case token == "" || strings.ContainsAny(token, " \t\r\n"):
			return errors.New("a subject has no empty parts and no spaces")
		case token == ">" && i < len(tokens)-1:
			return errors.New("> stands at the end")
		case token != "*" && token != ">" && strings.ContainsAny(token, "*>"):
			return errors.New("* and > stand for whole parts between dots: write registry.scammers.* for all of a list")
		}
	}
	return nil
}

// matches says whether a subject is one of those that a pattern, which CheckPattern has seen, stands for.
func matches(subject, pattern string) bool {
	for subject != "" && pattern != "" {
		if pattern == ">" {
			return true
		}
		var is, want string
		is, subject, _ = strings.Cut(subject, ".")
		want, pattern, _ = strings.Cut(pattern, ".")
		if want != "*" && want != is {
			return false
		}
	}
	return subject == pattern // both at their end
}
