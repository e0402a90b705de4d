//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

// hostile is a request that nobody should make, as bytes, and the status it gets. 0: whatever.
type hostile struct {
	request string
	status  int
}

func get(target string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
}

// hostiles are some of each kind; the tests of httpapi have all.
func hostiles() []hostile {
	return []hostile{
		{get("/api/scammers?search=%zz"), 400}, {get("/api/scammers?search=%00"), 400}, {get("/api/scammers?limit=61"), 400},
		{get("/api/scammers?skip=1&skip=2"), 400}, {get("/api/check"), 400}, {get("/api/check?search=" + strings.Repeat("a", 5000)), 400},
		{get("/api/nothing"), 404}, {get("/api/chat/avatar/.."), 400}, {get("/metrics"), 404}, {get("/projection"), 404},
		{get("/api/donate/status?id=nobody"), 404}, {strings.Replace(get("/api/legit"), "GET", "DELETE", 1), 405},
		{strings.Replace(get("/api/legit"), "Host", "Registry-Min-Sequence: x\r\nHost", 1), 400},
		{strings.Replace(get("/api/legit"), "Host", "X: "+strings.Repeat("x", 40<<10)+"\r\nHost", 1), 431},
		{"GET /api/legit HTTP/1.1\r\n\r\n", 400}, {"nonsense\r\n\r\n", 400}, {"\x16\x03\x01\x02\x00\x01\x00", 0},
		{"POST /api/check HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
		{"GET /api/legit HTTP/1.1\r\nHost: a\r\nX-Half", -1}, {"POST /api/check HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nslow", -1}, {"", -1},
	}
}

// attack sends hostile requests to the living replica until ctx ends.
func (s *stage) attack(ctx context.Context) error {
	all := hostiles()
	for pause(ctx, between(s.hostileRNG, 20*time.Millisecond, 400*time.Millisecond)) {
		h := all[s.hostileRNG.IntN(len(all))]
		if err := h.send(ctx, strings.TrimPrefix(s.living.HTTP, "http://"), s.hostileRNG); err != nil && ctx.Err() == nil {
			s.report.fail("a hostile request: %v", err)
		}
		s.report.count("hostile requests")
	}
	return nil
}

// send makes the request. One with status -1 is never finished: its connection is held for a moment and dropped.
func (h hostile) send(ctx context.Context, addr string, rng *rand.Rand) error {
	conn, err := net.DialTimeout("tcp", addr, askWithin)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(askWithin)); err != nil {
		return err
	}
	_, _ = conn.Write([]byte(h.request)) // it may be cut off before its end
	if h.status < 0 {
		pause(ctx, between(rng, 0, time.Second))
		return nil
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if h.status > 0 && !strings.HasPrefix(line, fmt.Sprintf("HTTP/1.1 %d ", h.status)) {
		return fmt.Errorf("%.60q was answered with %q (%v), not %d", h.request, line, err, h.status)
	}
	return nil
}
