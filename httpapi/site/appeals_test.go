package site

import (
	"net/url"
	"testing"
)

// The number of a report goes where the operator wants it, and stays one part of the address.
func TestAppealAddresses(t *testing.T) {
	const id = `Z/1?a=b&c#ż "x"`
	for address, want := range map[string]string{
		"":                                      "",
		"https://a.example":                     "https://a.example",
		"https://a.example/form?x=1&y":          "https://a.example/form?x=1&y",
		"https://a.example:8443/{reportId}/new": "https://a.example:8443/Z%2F1%3Fa%3Db%26c%23%C5%BC%20%22x%22/new",
		"https://a.example/form?nr={reportId}&again={reportId}": "https://a.example/form?nr=Z%2F1%3Fa%3Db%26c%23%C5%BC%20%22x%22&again=Z%2F1%3Fa%3Db%26c%23%C5%BC%20%22x%22",
		"http://127.0.0.1:80?nr={reportId}":                     "http://127.0.0.1:80?nr=Z%2F1%3Fa%3Db%26c%23%C5%BC%20%22x%22",
	} {
		a, err := ParseAppeals(address)
		if err != nil {
			t.Errorf("%q: %v", address, err)
			continue
		}
		got := a.AddressFor(id)
		if got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
		if u, err := url.Parse(got); err != nil || u.Fragment != "" {
			t.Errorf("%q: %v, %v", got, u, err)
		}
	}
}

func TestAppealAddressesThatCannotBe(t *testing.T) {
	for _, address := range []string{
		"a.example", "mailto:a@b.example", "javascript:alert(1)", "https://", "https://{reportId}.example/", "https://x{reportId}/",
		"{reportId}", "https://u:p@a.example/", "https://a.example/#{reportId}", "https://a.example/{reportID}", "https://a.example/{id}",
		"https://a.example/a b", "https://a.example/%zz", "https:///{reportId}", "//a.example/",
	} {
		if a, err := ParseAppeals(address); err == nil {
			t.Errorf("%q is %q", address, a.AddressFor("1"))
		}
	}
}
