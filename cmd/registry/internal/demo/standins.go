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

// StandIns are small servers on loopback that play the services outside the demonstration: the
// guard service, the chat platform with pictures of some users, the coin network, and the
// moderators' pages with proofs and for appeals.
type StandIns struct {
	Guard, Chat, Coin string // addresses
	Proofs, Appeals   string // as --proofs-url and --appeals-url take them

	servers []*http.Server
	ended   chan error // one message a server
}

// StartStandIns binds free ports and serves on them until Stop.
func StartStandIns() (*StandIns, error) {
	s := &StandIns{}
	stands := []struct {
		address *string
		handler http.Handler
	}{{&s.Guard, plain("guard")}, {&s.Chat, chat()}, {&s.Coin, plain("coin network")}, {&s.Proofs, proofs()}, {&s.Appeals, appeals()}}
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

// proofs plays the page with the proofs of a report.
func proofs() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /dowody/{id}", func(w http.ResponseWriter, r *http.Request) {
		page(w, "Dowody "+r.PathValue("id"), "Tu moderacja pokazałaby zrzuty rozmów i potwierdzenia przelewów. W wersji pokazowej ich nie ma.")
	})
	return mux
}

// appeals plays the form for appeals.
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

// page writes a small page in Polish.
func page(w http.ResponseWriter, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><html lang=\"pl\"><meta name=\"viewport\" content=\"width=device-width\"><title>%[1]s</title><h1>%[1]s</h1><p>%[2]s</p>",
		html.EscapeString(title), html.EscapeString(text))
}

// chat answers as a chat platform does: two users of three have a picture.
func chat() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", plain("chat platform"))
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"id": r.PathValue("id"), "avatar": nil}
		if sum := sha256.Sum256([]byte(r.PathValue("id"))); sum[0]%3 != 0 {
			answer["avatar"] = hex.EncodeToString(sum[:16])
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // fails only when the other side has gone
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

// picture is a PNG of one colour, which no drawn default picture is.
func picture(id string, size int) []byte {
	sum := sha256.Sum256([]byte(id))
	shade := color.RGBA{sum[1], sum[2], sum[3], 255}
	var out bytes.Buffer
	_ = png.Encode(&out, image.NewPaletted(image.Rect(0, 0, size, size), color.Palette{shade})) // a buffer takes everything
	return out.Bytes()
}
