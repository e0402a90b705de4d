package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"
)

// StandIns are small servers on loopback that stand in for external services: the guard service,
// the chat platform with pictures of some users, and the coin network. The site has stand-ins for
// the moderators' pages of its own (site.Config.Demo).
type StandIns struct {
	Guard, Chat, Coin string // addresses

	servers []*http.Server
	ended   chan error // one message for each server
}

// StartStandIns binds free ports and serves on them until Stop.
func StartStandIns() (*StandIns, error) {
	s := &StandIns{}
	stands := []struct {
		address *string
		handler http.Handler
	}{{&s.Guard, plain("guard")}, {&s.Chat, chat()}, {&s.Coin, plain("coin network")}}
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

// picture draws a PNG as a user may choose one, but nobody's face: rings, stripes or quarter circles.
// It uses none of the colors of verdicts.
func picture(id string, size int) []byte {
	sum := sha256.Sum256([]byte(id))
	inks := [...]color.RGBA{{0x2f, 0x6f, 0xb5, 255}, {0x4a, 0x5b, 0xc4, 255}, {0x74, 0x50, 0xc0, 255}, {0x1f, 0x86, 0xa0, 255}, {0x51, 0x69, 0x7a, 255}, {0x9a, 0x46, 0xab, 255}}
	papers := [...]color.RGBA{{0xe8, 0xec, 0xf2, 255}, {0xbf, 0xcf, 0xe8, 255}, {0xcf, 0xc4, 0xe6, 255}, {0x22, 0x2b, 0x3a, 255}}
	img := image.NewPaletted(image.Rect(0, 0, size, size), color.Palette{papers[int(sum[1])%len(papers)], inks[int(sum[2])%len(inks)]})
	for py := range size {
		for px := range size {
			x, y := 3*(float64(px)+.5)/float64(size), 3*(float64(py)+.5)/float64(size)
			var shade int
			switch sum[3] % 3 {
			case 0:
				shade = int(3*math.Hypot(x-float64(sum[4]%4), y-float64(sum[5]%4))) % 2
			case 1:
				shade = int(2*x+float64(sum[4]%3)*y) % 2
			default:
				turn := sum[4+int(x)+3*int(y)]
				cx, cy := x-math.Floor(x)-float64(turn&1), y-math.Floor(y)-float64(turn>>1&1)
				shade = int(math.Hypot(cx, cy))
			}
			img.SetColorIndex(px, py, uint8(min(shade, 1)))
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // a buffer accepts everything
	return out.Bytes()
}
