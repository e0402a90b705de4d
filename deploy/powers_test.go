package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// powers are what somebody could publish to, and the roles that may. Whoever is not named must be refused.
func powers() map[string]string {
	const api = "$JS.API."
	return map[string]string{
		"registry.scammers.x":             "publisher operator",
		"registry.views.servers.x":        "publisher operator",
		"registry-rejected.e.1":           "replica snapshots",
		"$O.REGISTRY_SNAPSHOTS.M.x":       "snapshots",
		"$O.REGISTRY_SNAPSHOTS.C.x":       "snapshots",
		"$O.OTHER.C.x":                    "",
		"other":                           "",
		"$SYS.REQ.SERVER.PING":            "sys",
		"$SYS.REQ.ACCOUNT.REGISTRY.CONNZ": "sys",

		api + "INFO":                                       "publisher replica snapshots operator emergency",
		api + "STREAM.INFO.REGISTRY":                       "publisher replica snapshots operator emergency",
		api + "STREAM.INFO.OBJ_REGISTRY_SNAPSHOTS":         "replica snapshots operator emergency",
		api + "STREAM.INFO.OTHER":                          "operator emergency",
		api + "STREAM.NAMES":                               "operator emergency",
		api + "STREAM.CREATE.REGISTRY":                     "operator emergency",
		api + "STREAM.CREATE.REGISTRY_REJECTED":            "operator emergency",
		api + "STREAM.CREATE.OBJ_REGISTRY_SNAPSHOTS":       "operator emergency",
		api + "STREAM.CREATE.OTHER":                        "emergency",
		api + "STREAM.UPDATE.REGISTRY":                     "emergency",
		api + "STREAM.PURGE.REGISTRY":                      "emergency",
		api + "STREAM.DELETE.REGISTRY":                     "emergency",
		api + "STREAM.MSG.DELETE.REGISTRY":                 "emergency",
		api + "STREAM.RESTORE.REGISTRY":                    "emergency",
		api + "STREAM.SNAPSHOT.REGISTRY":                   "operator emergency",
		api + "STREAM.LEADER.STEPDOWN.REGISTRY":            "operator emergency",
		api + "STREAM.PEER.REMOVE.REGISTRY":                "operator emergency",
		api + "STREAM.PURGE.REGISTRY_REJECTED":             "operator emergency",
		api + "STREAM.DELETE.REGISTRY_REJECTED":            "emergency",
		api + "STREAM.UPDATE.OBJ_REGISTRY_SNAPSHOTS":       "emergency",
		api + "STREAM.PURGE.OBJ_REGISTRY_SNAPSHOTS":        "snapshots emergency",
		api + "STREAM.DELETE.OBJ_REGISTRY_SNAPSHOTS":       "emergency",
		api + "STREAM.MSG.GET.REGISTRY":                    "replica snapshots operator emergency",
		api + "DIRECT.GET.REGISTRY":                        "replica snapshots operator emergency",
		api + "DIRECT.GET.OBJ_REGISTRY_SNAPSHOTS":          "replica snapshots operator emergency",
		api + "DIRECT.GET.REGISTRY_REJECTED":               "replica snapshots operator emergency",
		api + "CONSUMER.CREATE.REGISTRY.x":                 "replica snapshots operator emergency",
		api + "CONSUMER.DURABLE.CREATE.REGISTRY.x":         "emergency",
		api + "CONSUMER.CREATE.REGISTRY_REJECTED.x":        "operator emergency",
		api + "CONSUMER.CREATE.OTHER.x":                    "emergency",
		api + "CONSUMER.CREATE.OBJ_REGISTRY_SNAPSHOTS.x.>": "replica snapshots operator emergency",
		api + "CONSUMER.MSG.NEXT.REGISTRY.x":               "replica snapshots operator emergency",
		api + "CONSUMER.DELETE.REGISTRY.x":                 "replica snapshots operator emergency",
		api + "CONSUMER.DELETE.OTHER.x":                    "operator emergency",
		api + "ACCOUNT.PURGE.REGISTRY":                     "emergency",
	}
}

// ears are what somebody could listen to, and the roles that may.
func ears() map[string]string {
	heard := map[string]string{
		">":                   "sys",
		"_INBOX.>":            "sys",
		"registry.>":          "operator sys",
		"registry-rejected.>": "publisher operator sys",
		"$O.>":                "sys",
		"$JS.API.>":           "sys",
		"$JS.EVENT.>":         "sys",
		"$SYS.>":              "sys",
	}
	for _, role := range roles() {
		heard["_INBOX."+role+".>"] = role + " sys" // sys is in an account of its own: it hears nothing of the registry's
	}
	return heard
}

func roles() []string {
	return []string{"publisher", "replica", "snapshots", "operator", "emergency", "sys"}
}

// A role may do what its line says and nothing else; nobody publishes into another's inbox or listens to it.
func TestPowers(t *testing.T) {
	c := startNode(t)
	for _, role := range roles() {
		nc := c.connect(t, role)
		for subject, may := range powers() {
			if role == "sys" && !strings.HasPrefix(subject, "$SYS") {
				continue // in an account without JetStream and without the registry
			}
			compare(t, role+" publishes to "+subject, named(may, role), allowed(t, nc, subject, func() error { return nc.Publish(subject, nil) }))
		}
		for _, other := range roles() {
			if subject := "_INBOX." + other + ".x"; role != "sys" {
				compare(t, role+" publishes to "+subject, false, allowed(t, nc, subject, func() error { return nc.Publish(subject, nil) }))
			}
		}
		for subject, may := range ears() {
			compare(t, role+" listens to "+subject, named(may, role), allowed(t, nc, subject, func() error {
				sub, err := nc.SubscribeSync(subject)
				t.Cleanup(func() { _ = sub.Unsubscribe() }) // the connection may have been closed before
				return err
			}))
		}
	}
}

func named(roles, role string) bool { return slices.Contains(strings.Fields(roles), role) }

func compare(t *testing.T, what string, want, got bool) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// allowed says whether the server took it. Its refusal comes before the answer to the flush.
func allowed(t *testing.T, nc *nats.Conn, subject string, try func() error) bool {
	t.Helper()
	if err := try(); err != nil {
		t.Fatal(subject, err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(subject, err)
	}
	refused := nc.LastError()
	return refused == nil || !strings.Contains(refused.Error(), `"`+subject+`"`)
}
