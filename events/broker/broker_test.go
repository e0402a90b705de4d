package broker

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStartInMemoryOnly(t *testing.T) {
	b, err := Start(Config{StoreDir: t.TempDir(), Addr: "-"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Shutdown()
	nc, err := b.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_ = context.Background
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage}); err != nil {
		t.Fatal(err)
	}
	if b.Addr() != "" || b.ClientURL() != "" {
		t.Error("an address without a listener:", b.Addr(), b.ClientURL())
	}
}
