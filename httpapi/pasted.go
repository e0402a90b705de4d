package httpapi

import (
	"net/url"
	"strings"
)

// pastedID finds the chat id in what people paste: a mention, <@123> or <@!123>, or an http(s)
// address with /users/<digits> in its path (API contract, check). Anything else is not an id.
func pastedID(s string) (id string, ok bool) {
	if strings.HasPrefix(s, "<@") {
		return mentionID(s)
	}
	if !strings.Contains(s, "/users/") {
		return "", false
	}
	return addressID(s)
}

func mentionID(s string) (string, bool) {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "<@"), "!")
	id, closed := strings.CutSuffix(s, ">")
	return id, closed && digits(id)
}

func addressID(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	segments := strings.Split(u.Path, "/")
	for i, id := range segments[1:] {
		if segments[i] == "users" && digits(id) {
			return id, true
		}
	}
	return "", false
}
