package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// Whatever a platform says of a user, what is taken for a picture's name can stand in an address
// as it is.
func FuzzAvatarName(f *testing.F) {
	for _, seed := range []string{
		`{"avatar":"a_0f"}`, `{"avatar":null}`, `{"avatar":"../x"}`, `{"avatar":1}`, `{"AVATAR":"x"}`, `[`, `{"avatar":"\u0000"}`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		name, err := avatarName(body)
		switch {
		case err == nil && !plainID(name):
			t.Errorf("%q is a name", name)
		case err != nil && (name != "" || !errors.Is(err, ErrNoPicture) && !errors.Is(err, ErrUnusable)):
			t.Errorf("%q: %v", name, err)
		}
	})
}

// What is passed on is one of the four kinds, and no browser that reads the bytes itself takes
// it for a document.
func FuzzPicture(f *testing.F) {
	for _, seed := range []string{pngText, "GIF89a", "\xff\xd8\xff", "RIFF\x00\x00\x00\x00WEBPVP8 ", "<svg", "<html", "GIF89a<script>", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := pictureOf(data)
		if err != nil {
			return
		}
		if kind := http.DetectContentType(p.Bytes); kind != p.Type || !strings.HasPrefix(kind, "image/") || strings.Contains(kind, "svg") {
			t.Errorf("%q passed on as %s, is %s", data, p.Type, kind)
		}
		if data[0] == '<' || data[0] == ' ' || data[0] == '%' {
			t.Errorf("%q passed on as %s", data, p.Type)
		}
	})
}
