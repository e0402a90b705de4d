package bucket

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"example.org/registry/snapshots"
)

// timeForm is how names write the time: sortable, and without characters that need thought.
const timeForm = "20060102T150405.000Z"

// behindPrefix is what follows lineage in a name of ours.
var behindPrefix = regexp.MustCompile(`^[0-9]{20}-[0-9a-f]{8}-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z$`)

// NameOf is the name that the archive with this manifest has in the bucket. Names of one stream and epoch
// sort by sequence, then by digest, then by time.
func NameOf(m snapshots.Manifest) string {
	return fmt.Sprintf("%s%020d-%.8s-%s", lineage(m.Stream, m.StreamEpoch), m.Sequence, m.Digest, m.Time.UTC().Format(timeForm))
}

// lineage is how the names of one stream and epoch begin. An epoch may be any text, so it stands there
// as a hash.
func lineage(stream, epoch string) string {
	return fmt.Sprintf("%s-%.4x-", stream, sha256.Sum256([]byte(epoch)))
}

// ownName says whether name is one that this program gave to a snapshot of this stream and epoch.
func ownName(name, stream, epoch string) bool {
	rest, ok := strings.CutPrefix(name, lineage(stream, epoch))
	return ok && behindPrefix.MatchString(rest)
}
