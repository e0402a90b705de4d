package main

import (
	"bytes"
	"encoding/json"
	"image/png"
	"net/http"
	"testing"
)

// The stand-ins are what the demonstration needs and no more: they answer on loopback, two users
// of three have a picture, and after stop nothing listens.
func TestStandIns(t *testing.T) {
	s, err := startStandIns()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{s.guard, s.chat, s.coin} {
		if status, body, err := ask(address); err != nil || status != http.StatusOK || !bytes.Contains(body, []byte("stand-in")) {
			t.Errorf("%s: %d %q %v", address, status, body, err)
		}
	}
	pictured := 0
	for _, e := range mustDemo(t)[:30] {
		id := e.Data.Subject() // any text will do
		_, body, err := ask(s.chat + "/users/" + id)
		var user struct {
			ID     string
			Avatar *string
		}
		if err != nil || json.Unmarshal(body, &user) != nil || user.ID != id {
			t.Fatalf("%s: %s %v", id, body, err)
		}
		if user.Avatar == nil {
			continue
		}
		pictured++
		_, picture, err := ask(s.chat + "/avatars/" + id + "/" + *user.Avatar + ".png?size=32")
		if img, bad := png.Decode(bytes.NewReader(picture)); err != nil || bad != nil || img.Bounds().Dx() != 32 {
			t.Errorf("%s: %v %v", id, err, bad)
		}
	}
	if pictured < 10 || pictured > 28 {
		t.Errorf("%d of 30 have a picture", pictured)
	}
	s.stop()
	for _, address := range []string{s.guard, s.chat, s.coin} {
		if _, _, err := ask(address); err == nil {
			t.Errorf("%s still answers", address)
		}
	}
}
