package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
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
// certificate is a good one for 127.0.0.1 unless spoil, which may be nil, changes it.
func (a *authority) issue(t *testing.T, spoil func(*x509.Certificate)) (dir string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a broker"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if spoil != nil {
		spoil(template)
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

// Commands and servers connect over TLS, with the authority of --nats-ca and the second of two addresses.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	c := startNodeFrom(t, tlsOptions(t, ca.issue(t, nil)))
	createStreams(t, c.connect(t, "operator", nats.RootCAs(ca.file)))
	require.Contains(t, output(t, registry, append([]string{"publish", eventFile(t, 20)}, c.over("publisher", ca.file)...)...), "20 sent")
	r := serve(t, append(c.over("snapshots", ca.file), "--snapshot-every=0")...)
	await(t, r.Admin+"/projection", `"checkpoint":20,`)
}

// If the broker cannot prove who it is, commands end with status 1 and one line that says why, and a server waits and says
// why.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	other := newAuthority(t)
	for name, c := range map[string]struct {
		spoil    func(*x509.Certificate)
		ca, says string
	}{
		"another authority": {nil, other.file, "certificate signed by unknown authority"},
		"another name":      {func(c *x509.Certificate) { c.IPAddresses = nil }, ca.file, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := startNodeFrom(t, tlsOptions(t, ca.issue(t, c.spoil))).over("operator", c.ca)
			refused := exec.CommandContext(t.Context(), registry, append([]string{"rejected", "list"}, flags...)...)
			said, err := refused.CombinedOutput()
			require.Error(t, err)
			require.Equal(t, 1, refused.ProcessState.ExitCode())
			require.Equal(t, 1, strings.Count(string(said), "\n"), "%s", said)
			require.Contains(t, string(said), c.says)

			r := serve(t, flags...)
			var body string
			until(t, func() string { return "readyz says " + c.says + ", not " + body }, func() bool {
				_, _, body = get(t, r.Admin+"/readyz", nil)
				return strings.Contains(body, c.says)
			})
		})
	}
}

// Other machines reach an embedded broker by embedded-tls.conf: with its key and the authority a backend publishes, and
// nobody else gets in.
func TestEmbeddedTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	certificate := ca.issue(t, nil)
	dir := t.TempDir()
	text, err := os.ReadFile("nats/embedded-tls.conf")
	require.NoError(t, err)
	text = []byte(strings.ReplaceAll(string(text), "/run/credentials/registry.service/etc_", certificate+"/"))
	text = []byte(strings.ReplaceAll(string(text), "etc_embedded.conf", "embedded.conf"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "embedded-tls.conf"), text, 0o600))
	text, err = os.ReadFile("nats/embedded.conf")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "embedded.conf"), text, 0o600))

	address := freeAddress(t)
	r := serve(t, "--embedded-nats-addr="+address, "--embedded-nats-config="+filepath.Join(dir, "embedded-tls.conf"))
	require.NoError(t, r.WaitReady(t.Context()))
	authority := []string{"--nats-ca=" + ca.file}
	key := []string{"--nats-creds=" + filepath.Join(secrets, "publisher.nk"), "--nats-inbox-prefix=_INBOX.publisher"}
	for _, flags := range [][]string{nil, authority, key} {
		refused := exec.CommandContext(t.Context(), registry, append([]string{"publish", "--nats-url=tls://" + address, eventFile(t, 20)}, flags...)...)
		require.Error(t, refused.Run(), flags)
	}
	output(t, registry, slices.Concat([]string{"publish", "--nats-url=tls://" + address, eventFile(t, 20)}, authority, key)...)
	await(t, r.Admin+"/projection", `"checkpoint":20,`)
}
