package main

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
	"net"
	"net/http"
	"strconv"
	"time"
)

// standIns play the outside world for the demonstration, and for it alone: the guard service, the
// chat platform with some users' pictures, and the coin network. They listen on loopback.
type standIns struct {
	servers []*http.Server
	ended   chan error // one message a server
	guard   string     // addresses
	chat    string
	coin    string
}

// startStandIns binds free ports and serves on them until stop.
func startStandIns() (*standIns, error) {
	s := &standIns{ended: make(chan error, 3)}
	for _, one := range []struct {
		address *string
		handler http.Handler
	}{{&s.guard, plainStandIn("guard")}, {&s.chat, chatStandIn()}, {&s.coin, plainStandIn("coin network")}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.stop()
			return nil, fmt.Errorf("demonstration: %w", err)
		}
		srv := &http.Server{Handler: one.handler, ReadHeaderTimeout: 5 * time.Second}
		s.servers = append(s.servers, srv)
		*one.address = "http://" + l.Addr().String()
		go func() { s.ended <- srv.Serve(l) }()
	}
	return s, nil
}

// stop returns when no goroutine of the servers is left.
func (s *standIns) stop() {
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

// outside fills in stand-ins for what is not configured, in the demonstration. stop ends them.
func (s *server) outside() (stop func(), err error) {
	f := s.flags
	if !f.Demo {
		return func() {}, nil
	}
	stands, err := startStandIns()
	if err != nil {
		return nil, err
	}
	for _, one := range []struct {
		name  string
		flag  *publicURL
		value string
	}{{"guard", &f.GuardURL, stands.guard}, {"chat", &f.ChatURL, stands.chat}, {"coin", &f.CoinURL, stands.coin}} {
		if *one.flag == "" {
			*one.flag = publicURL(one.value)
			s.log.Info("demonstration stand-in", "for", one.name, "address", one.value)
		}
	}
	if f.ChatAPIURL == "" && f.ChatCDNURL == "" {
		f.ChatAPIURL, f.ChatCDNURL = publicURL(stands.chat), publicURL(stands.chat)
		s.log.Info("demonstration stand-in", "for", "pictures of users", "address", stands.chat)
	}
	return stands.stop, nil
}

func plainStandIn(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "stand-in for the %s in the demonstration\n", name)
	})
}

// chatStandIn answers as a chat platform: two users of three have a picture.
func chatStandIn() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", plainStandIn("chat platform"))
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
		_, _ = w.Write(dawn(r.PathValue("id"), size))
	})
	return mux
}

// dawn is a picture that nobody takes for a drawn default: a sun over a horizon, as a PNG.
func dawn(id string, size int) []byte {
	sum := sha256.Sum256([]byte(id))
	img := image.NewRGBA(image.Rect(0, 0, size, size))
	horizon, radius := size*(10+int(sum[1]%4))/16, size*(3+int(sum[2]%3))/16
	middle := size * (5 + int(sum[3]%7)) / 16
	for y := range size {
		fade := uint8(y * 120 / size)
		sky := color.RGBA{sum[4]/3 + 60 + fade, sum[5]/3 + 50 + fade/2, sum[6]/3 + 110, 255}
		for x := range size {
			dx, dy := x-middle, y-horizon
			switch {
			case y >= horizon:
				img.SetRGBA(x, y, color.RGBA{sky.R / 3, sky.G / 3, sky.B / 2, 255})
			case dx*dx+dy*dy < radius*radius:
				img.SetRGBA(x, y, color.RGBA{255, 214, 130, 255})
			default:
				img.SetRGBA(x, y, sky)
			}
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // a buffer takes everything
	return out.Bytes()
}
