package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// signed is an installation whose users have signed tokens (.creds files) instead of lines in accounts.conf.
type signed struct {
	t       *testing.T
	account nkeys.KeyPair
}

func keyPair(t *testing.T, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
	t.Helper()
	pair, err := create()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return pair, public
}

// startSigned starts a node that trusts an operator with one account, which has JetStream.
func startSigned(t *testing.T) (url string, s signed) {
	t.Helper()
	operator, operatorID := keyPair(t, nkeys.CreateOperator)
	account, accountID := keyPair(t, nkeys.CreateAccount)
	_, systemID := keyPair(t, nkeys.CreateAccount)
	resolver := &server.MemAccResolver{}
	for _, id := range []string{accountID, systemID} {
		claims := jwt.NewAccountClaims(id)
		if id == accountID {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, MemoryStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
		}
		token, err := claims.Encode(operator)
		if err == nil {
			err = resolver.Store(id, token)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	trusted := jwt.NewOperatorClaims(operatorID)
	node, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
		TrustedOperators: []*jwt.OperatorClaims{trusted}, AccountResolver: resolver, SystemAccount: systemID,
	})
	if err != nil {
		t.Fatal(err)
	}
	node.Start()
	t.Cleanup(func() { node.Shutdown(); node.WaitForShutdown() })
	if !node.ReadyForConnections(patience) {
		t.Fatal("the node does not start")
	}
	return node.ClientURL(), signed{t, account}
}

// creds writes a user's file. may are the subjects that the user may publish to; none: all.
func (s signed) creds(may ...string) string {
	s.t.Helper()
	user, userID := keyPair(s.t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(userID)
	claims.Permissions.Pub.Allow = may
	token, err := claims.Encode(s.account)
	if err != nil {
		s.t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "user.creds")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// A file of credentials works like the seed of an nkey; one of another installation, and none, are refused with the flag that is
// to be mended; and so is what the token does not allow.
func TestCredentialsFiles(t *testing.T) {
	url, s := startSigned(t)
	_, stranger := startSigned(t)
	flags := func(creds string) []string { return []string{"--nats-url=" + url, "--nats-creds=" + creds} }
	r := serve(t, append(flags(s.creds()), "--snapshot-every=0")...)
	await(t, r.Admin+"/readyz", "")
	file := eventFile(t, 5)
	if said := output(t, registry, append([]string{"publish", file}, flags(s.creds("registry.>", "$JS.API.STREAM.INFO.REGISTRY"))...)...); !strings.Contains(said, "5 sent") {
		t.Error(said)
	}
	await(t, r.Admin+"/projection", `"checkpoint":5,`)
	refusedOrder(t, append([]string{"verify"}, flags(stranger.creds())...), "--nats-creds")
	refusedOrder(t, []string{"verify", "--nats-url=" + url}, "--nats-creds")
	refusedOrder(t, append([]string{"verify"}, flags(s.creds("registry.>", "$JS.API.STREAM.INFO.REGISTRY"))...), "may not publish to $JS.API.CONSUMER.CREATE.REGISTRY.")
	if _, err := nats.Connect(url); err == nil {
		t.Error("the node lets everybody in")
	}
}
