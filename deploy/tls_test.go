package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
)

// authority is a test's certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string // PEM, for --nats-ca
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a := &authority{key: newKey(t), file: filepath.Join(t.TempDir(), "ca.crt")}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	require.NoError(t, err)
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// issue writes a server's certificate and key, tls.crt and tls.key, into a new directory. The
// certificate is a good one for 127.0.0.1 unless mend, which may be nil, changes it.
func (a *authority) issue(t *testing.T, mend func(*x509.Certificate)) (dir string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a broker"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if mend != nil {
		mend(template)
	}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir = t.TempDir()
	writePEM(t, filepath.Join(dir, "tls.crt"), "CERTIFICATE", der)
	writePEM(t, filepath.Join(dir, "tls.key"), "PRIVATE KEY", private)
	return dir
}

// tlsOptions reads nats.conf with its TLS line uncommented and the certificate in dir.
func tlsOptions(t *testing.T, dir string) func() (*server.Options, error) {
	t.Helper()
	text, err := os.ReadFile("nats/nats.conf")
	require.NoError(t, err)
	changed := strings.Replace(string(text), "# tls {", "tls {", 1)
	if changed == string(text) || !strings.Contains(changed, "/etc/nats-tls/") {
		t.Fatal("nats.conf has another line about TLS than this test knows")
	}
	changed = strings.ReplaceAll(changed, "/etc/nats-tls/", dir+"/")
	accounts, err := os.ReadFile("nats/accounts.conf")
	require.NoError(t, err)
	for file, text := range map[string]string{"nats.conf": changed, "accounts.conf": string(accounts)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	return func() (*server.Options, error) { return server.ProcessConfigFile(filepath.Join(dir, "nats.conf")) }
}

// over is as over TLS, with an address where nobody listens before the node's own, and an
// authority.
func (c *cluster) over(role, ca string) []string {
	address := strings.TrimPrefix(strings.TrimPrefix(c.server.ClientURL(), "nats://"), "tls://")
	flags := append(c.as(role)[1:], "--nats-url=tls://127.0.0.1:1,tls://"+address)
	if ca != "" {
		flags = append(flags, "--nats-ca="+ca)
	}
	return flags
}

// TestTLS: every command connects over TLS, with the authority of --nats-ca and the second of two
// addresses.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	c := startNodeFrom(t, tlsOptions(t, ca.issue(t, nil)))
	createStreams(t, c, c.connect(t, "operator", nats.RootCAs(ca.file)))
	if said := output(t, registry, append([]string{"publish", eventFile(t, 20)}, c.over("publisher", ca.file)...)...); !strings.Contains(said, "20 sent") {
		t.Error(said)
	}
	r := serve(t, append(c.over("snapshots", ca.file), "--snapshot-every=0")...)
	await(t, r.Admin+"/projection", `"checkpoint":20,`)
	admin := "--admin-addr=" + r.AdminAddr()
	name, _, _ := strings.Cut(output(t, registry, "snapshot", "create", admin), ":")
	for want, args := range map[string][]string{
		"no difference":         {"verify", admin},
		"registry.entry.listed": {"export", name},
		name:                    {"snapshot", "list"},
		"good":                  {"snapshot", "verify", name},
		"0 rejected events":     {"rejected", "list"},
	} {
		if said := output(t, registry, append(args, c.over("operator", ca.file)...)...); !strings.Contains(said, want) {
			t.Errorf("%v: %.300s", args, said)
		}
	}
}

// TestTLSRefused: if the broker cannot prove who it is, commands end with status 1 and one line
// that says why, and a server waits and says why.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	bad := filepath.Join(t.TempDir(), "bad.crt")
	require.NoError(t, os.WriteFile(bad, []byte("no certificate"), 0o600))
	for name, x := range map[string]struct {
		mend     func(*x509.Certificate)
		ca, says string
	}{
		"another authority": {nil, other.file, "certificate signed by unknown authority"},
		"no authority":      {nil, "", "certificate signed by unknown authority"},
		"expired":           {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, ca.file, "certificate has expired"},
		"another name":      {func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"broker.example"} }, ca.file, "127.0.0.1"},
		"no certificates":   {nil, bad, "--nats-ca: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startNodeFrom(t, tlsOptions(t, ca.issue(t, x.mend)))
			flags := c.over("operator", x.ca)
			for _, args := range [][]string{{"publish", eventFile(t, 1)}, {"verify"}, {"rejected", "list"}, {"snapshot", "list"}, {"export", "NAME"}} {
				refusedOrder(t, append(args, flags...), x.says)
			}
			if x.ca == bad {
				refusedOrder(t, append([]string{"serve", "--data-dir=" + t.TempDir(), "--http-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0"}, flags...), x.says)
				return
			}
			r := serve(t, flags...)
			awaitReason(t, r, x.says)
		})
	}
}

// refusedOrder runs a command that must end with status 1 and one line containing says.
func refusedOrder(t *testing.T, args []string, says string) {
	t.Helper()
	var exit *exec.ExitError
	said, err := exec.CommandContext(t.Context(), registry, args...).CombinedOutput()
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || strings.Count(string(said), "\n") != 1 || !strings.Contains(string(said), says) {
		t.Errorf("%s: %v: %s, want one line with %q", args[0], err, said, says)
	}
}

// awaitReason waits until a server that is not ready says why.
func awaitReason(t *testing.T, r *registrytest.Server, says string) {
	t.Helper()
	var status int
	var body string
	until(t, func() string { return fmt.Sprintf("readyz says %q; the last answer was %d %s", says, status, body) }, func() bool {
		status, _, body = get(t, r.Admin+"/readyz", nil)
		return status == http.StatusServiceUnavailable && strings.Contains(body, says)
	})
}

// TestEmbeddedTLS: a server whose embedded broker other machines reach, by embedded-tls.conf: with its key and the authority a
// backend publishes, what it publishes is served, and nobody else gets in.
func TestEmbeddedTLS(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	certificate := a.issue(t, nil)
	for _, name := range []string{"embedded-tls.conf", "embedded.conf"} {
		text, err := os.ReadFile(filepath.Join("nats", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(string(text), "/etc/registry", certificate)), 0o600))
	}
	address := freeAddress(t)
	r := serve(t, "--embedded-nats-addr="+address, "--embedded-nats-config="+filepath.Join(dir, "embedded-tls.conf"))
	require.NoError(t, r.WaitReady(t.Context()))
	as := func(flags ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), registry, append([]string{"publish", "--nats-url=tls://" + address, eventFile(t, 20)}, flags...)...)
	}
	key := []string{"--nats-creds=" + filepath.Join(secrets, "publisher.nk"), "--nats-inbox-prefix=_INBOX.publisher"}
	for _, flags := range [][]string{nil, {"--nats-ca=" + a.file}, key} {
		said, err := as(flags...).CombinedOutput()
		require.Error(t, err, "%v: %s", flags, said)
	}
	said, err := as(append(key, "--nats-ca="+a.file)...).CombinedOutput()
	require.NoError(t, err, "%s", said)
	await(t, r.Admin+"/projection", `"checkpoint":20,`)
}
