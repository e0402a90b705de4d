package broker

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

const twoUsers = `
authorization {
	users = [
		{user: "backend", password: secret, permissions: {publish: ["s", "$JS.API.>"], subscribe: "_INBOX.>"}}
		{user: "other", password: "other"}
	]
}
`

func config(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// Off loopback, nobody connects without being a user, in whatever form the file names them;
// the registry itself always does.
func TestUsers(t *testing.T) {
	for name, text := range map[string]string{
		"users":         twoUsers,
		"one user":      `authorization {user: backend, password: secret}`,
		"accounts":      `accounts { REGISTRY: {jetstream: enabled, users: [{user: backend, password: secret}]} }`,
		"accounts, js":  `accounts { REGISTRY: {jetstream: {max_streams: 5}, users: [{user: backend, password: secret}]}, B: {users: [{user: b, password: b}]} }`,
		"with a system": `system_account: SYS, accounts { SYS: {users: [{user: s, password: s}]}, REGISTRY: {jetstream: true, users: [{user: backend, password: secret}]} }`,
	} {
		for _, addr := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
			t.Run(name+" "+addr, func(t *testing.T) {
				b := started(t, Config{Addr: addr, ConfigFile: config(t, text)})
				_, port, err := net.SplitHostPort(b.srv.Addr().String())
				require.NoError(t, err)
				url := "nats://127.0.0.1:" + port
				refused(t, url)
				refused(t, url, nats.UserInfo("backend", "wrong"))
				refused(t, url, nats.UserInfo("registry-internal-", ""))
				useStream(t, internal(t, b))
				nc, err := nats.Connect(url, nats.UserInfo("backend", "secret"))
				require.NoError(t, err)
				defer nc.Close()
				useStream(t, nc) // the same account, so the same stream
			})
		}
	}
}

func refused(t *testing.T, url string, opts ...nats.Option) {
	t.Helper()
	nc, err := nats.Connect(url, opts...)
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("connected without being a user, or failed otherwise: %v", err)
	}
	if err == nil {
		nc.Close()
	}
}

// Nothing in the file opens a second listener, moves the store, or lets anybody in.
func TestConfigRefuses(t *testing.T) {
	for setting, problem := range map[string]string{
		`port: 4333`:                             `the setting "port"`,
		`Port: 4333`:                             `the setting "Port"`,
		`http_port: 8222`:                        `the setting "http_port"`,
		`leafnodes {port: 7422}`:                 `the setting "leafnodes"`,
		`jetstream {store_dir: "elsewhere"}`:     `the setting "jetstream"`,
		`no_auth_user: backend`:                  `the setting "no_auth_user"`,
		`nonsense: 1`:                            `the setting "nonsense"`,
		`max_connections: "many"`:                `interface conversion`,
		`authorization {`:                        ``,
		`authorization {token: "t"}`:             `defines no users`,
		`authorization {user: a}`:                `has no password`,
		`accounts {REGISTRY: {jetstream: true}}`: `defines no users`,
		`accounts {REGISTRY: {jetstream: true, users: [{user: a}]}}`: `has no password`,
		`authorization {auth_callout {issuer: "ABJHLOVMPA4CI6R5KLNGOB4GSLNIY7IOUPAJC4YFNDLQVIOBYQGUWVLA", users: ["u"], account: "A"}, users: [{user: u, password: p}]}, accounts {REGISTRY: {jetstream: true}}`: `auth_callout`,
	} {
		text := setting // beside two users, unless it is about users
		if !strings.HasPrefix(setting, "auth") && !strings.HasPrefix(setting, "acc") {
			text = twoUsers + setting
		}
		t.Run(setting, func(t *testing.T) {
			fails(t, Config{StoreDir: t.TempDir(), Addr: "127.0.0.1:0", ConfigFile: config(t, text)}, problem)
		})
	}
}

// Clients use TLS; the registry's own connection through memory needs none.
func TestTLS(t *testing.T) {
	certFile, keyFile := certificate(t)
	for _, verify := range []string{"", "verify: true, ca_file: %[1]q"} {
		tls := fmt.Sprintf("tls {cert_file: %[1]q, key_file: %[2]q, "+verify+"}", certFile, keyFile)
		b := started(t, Config{Addr: "127.0.0.1:0", ConfigFile: config(t, twoUsers+tls)})
		useStream(t, internal(t, b))
		if nc, err := nats.Connect(b.ClientURL(), nats.UserInfo("backend", "secret")); err == nil {
			nc.Close()
			t.Error("connected without trusting the certificate")
		}
		if verify != "" {
			continue
		}
		nc, err := nats.Connect(b.ClientURL(), nats.UserInfo("backend", "secret"), nats.RootCAs(certFile))
		require.NoError(t, err)
		useStream(t, nc)
		nc.Close()
	}
}

func TestCertificatesAreNoUsers(t *testing.T) {
	certFile, keyFile := certificate(t)
	file := config(t, twoUsers+fmt.Sprintf("tls {cert_file: %[1]q, key_file: %[2]q, ca_file: %[1]q, verify_and_map: true}", certFile, keyFile))
	fails(t, Config{StoreDir: t.TempDir(), ConfigFile: file}, "verify_and_map")
}

// certificate writes a certificate for 127.0.0.1, which no system trusts.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	made := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	require.NoError(t, err)

	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	return certFile, keyFile
}
