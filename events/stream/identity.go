package stream

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// MaxFollows bounds the epochs that a stream, a store or a snapshot follows.
const MaxFollows = 100

// Identity names the registry of a stream, a store or a snapshot.
type Identity struct {
	Stream  string   `json:"stream"` // its name
	Epoch   string   `json:"epoch"`
	Follows []string `json:"follows"`        // earlier epochs of the same registry, the newest first
	Demo    bool     `json:"demo,omitempty"` // of the demonstration
}

// IdentityOf returns the identity in a stream's metadata. Without an epoch there, the stream's creation time is
// the epoch.
func IdentityOf(info *jetstream.StreamInfo) Identity {
	metadata := info.Config.Metadata
	epoch := metadata[events.MetadataEpoch]
	if epoch == "" {
		epoch = strconv.FormatInt(info.Created.UnixNano(), 10)
	}

	return Identity{
		Stream:  info.Config.Name,
		Epoch:   epoch,
		Follows: strings.Fields(metadata[events.MetadataFollows]),
		Demo:    metadata[events.MetadataDemo] == "true",
	}
}

// Has reports whether epoch is the identity's own epoch or one that it follows.
func (i Identity) Has(epoch string) bool {
	return i.Epoch == epoch || slices.Contains(i.Follows, epoch)
}

// Related reports whether two identities are of one registry: they have an epoch in common.
func (i Identity) Related(o Identity) bool {
	if i.Epoch != "" && o.Has(i.Epoch) { // a new store has no epoch
		return true
	}
	return slices.ContainsFunc(i.Follows, o.Has)
}

// Follow returns the epochs that a new epoch follows: the epochs of others and all that they follow, each
// once, at most MaxFollows.
func Follow(epoch string, others ...Identity) (follows []string) {
	for _, other := range others {
		for _, earlier := range append([]string{other.Epoch}, other.Follows...) {
			isNew := earlier != "" && earlier != epoch && !slices.Contains(follows, earlier)
			if isNew && len(follows) < MaxFollows {
				follows = append(follows, earlier)
			}
		}
	}
	return follows
}
