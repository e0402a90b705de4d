package events

import (
	"net/url"
	"regexp"
	"strings"
)

// checkChatID rejects anything but a chat id (IsChatID). A search by id would never find an entry with another
// text, and people take an empty result for an all-clear.
func checkChatID(s string) error {
	if isLostValue(s) {
		return newDataError("chatId", "a value that a program has lost, such as undefined or null; of an unknown person, send unknown-<entryId>")
	}
	if !IsID(s) {
		return newDataError("chatId", "must be 1 to 64 of A-Z, a-z, 0-9, _ and -; of a mention or an address, send only the id in it")
	}
	return nil
}

// IsChatID reports whether s has the form of a chat id, in events and in the API alike:
// [A-Za-z0-9_-]{1,64}, and no value that a program has lost.
func IsChatID(s string) bool { return IsID(s) && !isLostValue(s) }

// isLostValue reports whether s is a text that programs, databases and spreadsheets make of a missing
// value, in capital or small letters.
func isLostValue(s string) bool {
	switch strings.ToLower(s) {
	case "undefined", "null", "nan", "none", "nil", "true", "false", "infinity", "unknown", "brak", "-1", "0":
		return true
	}
	return false
}

// ReadChatID returns the chat id that s contains: s itself, or the id in a reference (ReferredChatID). ok
// reports whether the result is a chat id.
func ReadChatID(s string) (id string, ok bool) {
	if referred, refers := ReferredChatID(s); refers {
		s = referred
	}
	return s, IsChatID(s)
}

// ReferredChatID returns the digits in a reference to a user: a mention, <@123> or <@!123>, or an
// address of the chat platform with the path /users/123. It reports whether s is such a reference.
func ReferredChatID(s string) (id string, ok bool) {
	if mention, isMention := strings.CutPrefix(s, "<@"); isMention {
		id, ok = strings.CutSuffix(strings.TrimPrefix(mention, "!"), ">")
		return id, ok && isDigits(id)
	}

	// A query or a fragment may follow the path. A user name may not stand before the host: to a reader,
	// https://discord.com@evil.example looks like an address of discord.com.
	address, err := url.Parse("https://" + webScheme.ReplaceAllString(s, ""))
	if err != nil || address.User != nil {
		return "", false
	}
	id, ok = strings.CutPrefix(address.Path, "/users/")
	id = strings.TrimSuffix(id, "/")
	return id, ok && platformHost.MatchString(strings.ToLower(address.Hostname())) && isDigits(id)
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

var (
	webScheme = regexp.MustCompile(`^[hH][tT][tT][pP][sS]?://`)

	// platformHost matches the domains of the chat platform, and all domains below them.
	platformHost = regexp.MustCompile(`^([a-z0-9.-]*\.)?discord(app)?\.com$`)
)
