package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"net"
	"net/http"
	"strconv"
	"time"
)

// StandIns are small servers on loopback that stand in for external services: the guard service,
// the chat platform with pictures of some users, the coin network, and the moderators' pages with
// proofs, for appeals and for reports.
type StandIns struct {
	Guard, Chat, Coin string // addresses
	// As --proofs-url, --appeals-url and --report-url take them.
	Proofs, Appeals, Reports string

	servers []*http.Server
	ended   chan error // one message for each server
}

// StartStandIns binds free ports and serves on them until Stop.
func StartStandIns() (*StandIns, error) {
	s := &StandIns{}
	stands := []struct {
		address *string
		handler http.Handler
	}{{&s.Guard, plain("guard")}, {&s.Chat, chat()}, {&s.Coin, plain("coin network")}, {&s.Proofs, proofs()}, {&s.Appeals, appeals()}, {&s.Reports, reports()}}
	s.ended = make(chan error, len(stands))
	for _, one := range stands {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.Stop()
			return nil, fmt.Errorf("demonstration: %w", err)
		}
		srv := &http.Server{Handler: one.handler, ReadHeaderTimeout: 5 * time.Second}
		s.servers = append(s.servers, srv)
		*one.address = "http://" + l.Addr().String()
		go func() { s.ended <- srv.Serve(l) }()
	}
	s.Proofs += "/dowody"
	s.Appeals += "/odwolanie?nr={reportId}"
	s.Reports += "/zgloszenie"
	return s, nil
}

// Stop closes the servers and waits for their goroutines.
func (s *StandIns) Stop() {
	for _, srv := range s.servers {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if err := srv.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
			_ = srv.Close()
		}
		cancel()
	}
	for range s.servers {
		<-s.ended
	}
}

func plain(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "stand-in for the %s in the demonstration\n", name)
	})
}

// proofs serves the page with the proofs of a report.
func proofs() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /dowody/{id}", func(w http.ResponseWriter, r *http.Request) {
		page(w, "Dowody "+r.PathValue("id"), "Tu moderacja pokazałaby zrzuty rozmów i potwierdzenia przelewów. W wersji pokazowej ich nie ma.")
	})
	return mux
}

// appeals serves the form for appeals.
func appeals() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /odwolanie", func(w http.ResponseWriter, r *http.Request) {
		title := "Odwołanie"
		if nr := r.URL.Query().Get("nr"); nr != "" {
			title += " od zgłoszenia " + nr
		}
		page(w, title, "Tu moderacja przyjęłaby odwołanie. W wersji pokazowej nikt go nie czyta.")
	})
	return mux
}

// reports serves the form for reports.
func reports() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /zgloszenie", func(w http.ResponseWriter, _ *http.Request) {
		page(w, "Zgłoszenie oszustwa", "Tu moderacja przyjęłaby zgłoszenie: ID konta, opis i zrzuty rozmowy. W wersji pokazowej nikt go nie czyta.")
	})
	return mux
}

// page writes a small page in Polish.
func page(w http.ResponseWriter, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><html lang=\"pl\"><meta name=\"viewport\" content=\"width=device-width\"><title>%[1]s</title><h1>%[1]s</h1><p>%[2]s</p>",
		html.EscapeString(title), html.EscapeString(text))
}

// chat responds like a chat platform: two users of three have a picture.
func chat() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", plain("chat platform"))
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"id": r.PathValue("id"), "avatar": nil}
		if sum := sha256.Sum256([]byte(r.PathValue("id"))); sum[0]%3 != 0 {
			answer["avatar"] = hex.EncodeToString(sum[:16])
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // fails only if the client has disconnected
	})
	mux.HandleFunc("GET /avatars/{id}/{file}", func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.Atoi(r.URL.Query().Get("size"))
		if err != nil || size < 16 || size > 512 {
			size = 128
		}
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(picture(r.PathValue("id"), size))
	})
	return mux
}

// picture draws a PNG of a person: a head and shoulders in front of a wall. It uses none of the
// colors of verdicts.
func picture(id string, size int) []byte {
	sum := sha256.Sum256([]byte(id))
	walls := [...]color.RGBA{{0x2f, 0x6f, 0xb5, 255}, {0x4a, 0x5b, 0xc4, 255}, {0x74, 0x50, 0xc0, 255}, {0x1f, 0x86, 0xa0, 255}, {0x51, 0x69, 0x7a, 255}, {0x9a, 0x46, 0xab, 255}}
	skins := [...]color.RGBA{{0xf3, 0xd3, 0xbd, 255}, {0xe0, 0xb0, 0x90, 255}, {0xa8, 0x75, 0x56, 255}, {0x6f, 0x4a, 0x38, 255}}
	hairs := [...]color.RGBA{{0x2b, 0x23, 0x22, 255}, {0x5a, 0x3d, 0x2b, 255}, {0xd8, 0xc0, 0x8a, 255}, {0x8a, 0x8f, 0x99, 255}}
	shirts := [...]color.RGBA{{0xe8, 0xec, 0xf2, 255}, {0x22, 0x2b, 0x3a, 255}, {0xbf, 0xcf, 0xe8, 255}, {0xcf, 0xc4, 0xe6, 255}}
	ink := color.RGBA{0x22, 0x1c, 0x1c, 255}
	img := image.NewPaletted(image.Rect(0, 0, size, size), color.Palette{
		walls[int(sum[1])%len(walls)], skins[int(sum[2])%len(skins)], hairs[int(sum[3])%len(hairs)], shirts[int(sum[4])%len(shirts)], ink})
	oval := func(x, y, cx, cy, rx, ry float64) bool { return (x-cx)*(x-cx)/(rx*rx)+(y-cy)*(y-cy)/(ry*ry) <= 1 }
	long := 0.24 + float64(sum[5]%3)*0.08 // length of the hair
	for py := range size {
		for px := range size {
			x, y := (float64(px)+.5)/float64(size), (float64(py)+.5)/float64(size)
			shade := uint8(0)
			switch {
			case oval(x, y, .42, .45, .025, .03) || oval(x, y, .58, .45, .025, .03) || oval(x, y, .5, .57, .06, .018):
				shade = 4
			case oval(x, y, .5, .48, .19, .23) && y > .33+.06*float64(sum[6]%2):
				shade = 1
			case oval(x, y, .5, .42, .24, long):
				shade = 2
			case oval(x, y, .5, 1.02, .4, .3):
				shade = 3
			case oval(x, y, .5, .7, .08, .12):
				shade = 1
			}
			img.SetColorIndex(px, py, shade)
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // a buffer accepts everything
	return out.Bytes()
}
