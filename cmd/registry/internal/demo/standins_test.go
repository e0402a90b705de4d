package demo

import (
	"bytes"
	"encoding/json"
	"image/png"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func ask(url string) (int, []byte, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

// The stand-ins are what the demonstration needs and no more: they answer on loopback, two users
// of three have a picture, and after stop nothing listens.
func TestStandIns(t *testing.T) {
	s, err := StartStandIns()
	require.NoError(t, err)
	for _, address := range []string{s.Guard, s.Chat, s.Coin} {
		if status, body, err := ask(address); err != nil || status != http.StatusOK || !bytes.Contains(body, []byte("stand-in")) {
			t.Errorf("%s: %d %q %v", address, status, body, err)
		}
	}
	pictured := 0
	for _, e := range mustEvents(t)[:30] {
		id := e.Data.Subject().String() // any text will do
		_, body, err := ask(s.Chat + "/users/" + id)
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
		_, picture, err := ask(s.Chat + "/avatars/" + id + "/" + *user.Avatar + ".png?size=32")
		if img, bad := png.Decode(bytes.NewReader(picture)); err != nil || bad != nil || img.Bounds().Dx() != 32 {
			t.Errorf("%s: %v %v", id, err, bad)
		}
	}
	if pictured < 10 || pictured > 28 {
		t.Errorf("%d of 30 have a picture", pictured)
	}
	s.Stop()
	for _, address := range []string{s.Guard, s.Chat, s.Coin} {
		if _, _, err := ask(address); err == nil {
			t.Errorf("%s still answers", address)
		}
	}
}
