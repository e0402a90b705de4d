package relay_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/registry/events/eventstest"
	"example.org/registry/events/eventstest/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, eventstest.Leaks()...) }

// patience bounds every wait; nothing is expected to take this long.
const patience = 30 * time.Second

// echo is the address of a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }() // ends with the connection
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, r *relay.Relay) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends a word and waits for its echo.
func say(c net.Conn, word string, within time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, word); err != nil {
		return err
	}
	return hear(c, word, within)
}

// hear waits for a word.
func hear(c net.Conn, word string, within time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, len(word)))
	return err
}

func TestRelay(t *testing.T) {
	r, err := relay.Start(echo(t))
	require.NoError(t, err)
	t.Cleanup(r.Close)
	c := dial(t, r)
	require.NoError(t, say(c, "hello", patience))
	r.Blackhole(true)
	if say(c, "lost?", 50*time.Millisecond) == nil {
		t.Error("an answer out of a black hole")
	}
	r.Blackhole(false)
	if err := hear(c, "lost?", patience); err != nil {
		t.Error("after the black hole:", err)
	}
	r.Away(true)
	if say(c, "gone", patience) == nil {
		t.Error("a connection outlives its network")
	}
	if say(dial(t, r), "gone", patience) == nil {
		t.Error("a new connection to what is away")
	}
	r.Away(false)
	if err := say(dial(t, r), "back", patience); err != nil {
		t.Error("after it was away:", err)
	}
}

// Of what a broker sends only the messages are lost that are meant to be.
func TestLose(t *testing.T) {
	broker := eventstest.Broker(t)
	r, err := relay.StartNATS(broker.Addr())
	require.NoError(t, err)
	t.Cleanup(r.Close)
	nc, err := nats.Connect("nats://" + r.Addr())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	sub, err := nc.SubscribeSync("to.>")
	require.NoError(t, err)
	r.Lose(func(message []byte) bool { return bytes.Contains(message, []byte("second")) })
	for _, text := range []string{"first", "second\r\nMSG", "third"} {
		require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: "to.us", Header: nats.Header{"Key": {"value"}}, Data: []byte(text)}))
		require.NoError(t, nc.Publish("to.us", []byte(text)))
	}
	for _, want := range []string{"first", "first", "third", "third"} {
		if m, err := sub.NextMsg(patience); err != nil || string(m.Data) != want {
			t.Fatalf("%v, %v, not %s", m, err, want)
		}
	}
}
