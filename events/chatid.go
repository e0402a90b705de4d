package events

import (
	"net/url"
	"strings"
)

// MaxChatID bounds a chat id, in characters.
const MaxChatID = 64

// checkChatID rejects chat ids that a client cannot query in the public API: every check of such an
// entry would find no match. The API trims its parameters, rejects lost values (IsLostValue), and
// reads a mention or an address as the id in it.
func checkChatID(s string) *Error {
	if err := checkText("chatId", s, MaxChatID); err != nil {
		return err
	}
	if strings.TrimSpace(s) != s {
		return inData("chatId", "begins or ends with white space")
	}
	if IsLostValue(s) {
		return inData("chatId", "undefined, null, NaN, None, nil and [object Object] are values that a program has lost")
	}
	if _, ok := ReferredChatID(s); ok {
		return inData("chatId", "a mention or an address of a user; send only the id in it")
	}
	return nil
}

// IsLostValue reports whether s is the text that programs make of a missing value. No user has such
// an id, so a check of it would find no match and be taken for an all-clear.
func IsLostValue(s string) bool {
	switch s {
	case "undefined", "null", "NaN", "None", "nil", "[object Object]":
		return true
	}
	return false
}

// ReferredChatID returns the chat id in a reference to a user: a mention, <@123> or <@!123>, or an
// http(s) address with /users/<digits> in its path.
func ReferredChatID(s string) (id string, ok bool) {
	if mention, is := strings.CutPrefix(s, "<@"); is {
		id, closed := strings.CutSuffix(strings.TrimPrefix(mention, "!"), ">")
		return id, closed && areDigits(id)
	}
	if !strings.Contains(s, "/users/") {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	segments := strings.Split(u.Path, "/")
	for i, id := range segments[1:] {
		if segments[i] == "users" && areDigits(id) {
			return id, true
		}
	}
	return "", false
}

func areDigits(s string) bool { return s != "" && digits(s) == len(s) }
