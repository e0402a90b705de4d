package bucket

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/snapshots"
)

// Name is the bucket of the snapshots (cmd/registry/CONTRACT.md#snapshots).
const Name = "REGISTRY_SNAPSHOTS"

const (
	streamName    = "OBJ_" + Name
	chunkPrefix   = "$O." + Name + ".C." // followed by an object's NUID
	namePrefix    = "$O." + Name + ".M." // followed by a name in base64
	manifestLabel = "manifest"           // in an object's metadata
)

// requestTimeout bounds one request to the broker.
const requestTimeout = 5 * time.Second

// Errors that callers distinguish.
var (
	ErrNoBucket = errors.New("there is no bucket " + Name)
	ErrNotFound = errors.New("there is no snapshot of this name")
)

// Config configures a Bucket.
type Config struct {
	// Replicas is the number of replicas of a bucket that Create makes. 0 means 1.
	Replicas int
}

// Bucket is the object store of snapshots. Any goroutine may use it.
type Bucket struct {
	js  jetstream.JetStream
	cfg Config

	// Fixed; tests set others.
	chunk       int           // bytes; at most half of the broker's maximum message
	orphanAfter time.Duration // the age from which RemoveOrphans deletes chunks
}

// New makes a Bucket. It makes no request.
func New(js jetstream.JetStream, cfg Config) *Bucket {
	cfg.Replicas = cmp.Or(cfg.Replicas, 1)
	return &Bucket{js: js, cfg: cfg, chunk: maxChunk, orphanAfter: 10 * time.Minute}
}

// Create makes the bucket if it is missing. It never alters an existing one.
func (b *Bucket) Create(ctx context.Context) error {
	if _, err := b.stream(ctx); !errors.Is(err, ErrNoBucket) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: Name, Description: "snapshots of the registry's read model",
		Storage: jetstream.FileStorage, Replicas: b.cfg.Replicas,
	})
	if errors.Is(err, jetstream.ErrBucketExists) {
		return nil // another replica was first
	}
	return b.explain(err, jetstream.DefaultAPIPrefix+"STREAM.CREATE."+streamName)
}

// Object is one snapshot in the bucket, or an object that another program put there.
type Object struct {
	Name  string
	Time  time.Time // when it was completed, by the broker's clock
	Bytes uint64

	// Manifest is the archive's own description, as put. Err is the reason why it is missing, or
	// why this program cannot use the archive.
	Manifest snapshots.Manifest
	Err      error

	info    jetstream.ObjectInfo
	subject string
	put     uint64 // the name's sequence in the bucket's stream
}

// Of reports whether o is a snapshot of the stream and, unless names is nil, of one of the histories.
// Of an archive that this program cannot use, only the name says so.
func (o Object) Of(stream string, names []string) bool {
	hash, named := historyOf(o.Name, stream)
	switch {
	case o.Err == nil && o.Manifest.Stream != stream || o.Err != nil && !named:
		return false
	case names == nil:
		return true
	case o.Err != nil:
		return slices.ContainsFunc(names, func(name string) bool { return hashOf(name) == hash })
	}
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.Manifest.Histories, name) })
}

// List returns every object, the newest first, and the broker's time. It omits objects that are
// still being put.
func (b *Bucket) List(ctx context.Context) ([]Object, time.Time, error) {
	objects, _, now, err := b.list(ctx)
	return objects, now, err
}

// list implements List. all is false if a name had disappeared when it was read.
func (b *Bucket) list(ctx context.Context) (objects []Object, all bool, now time.Time, err error) {
	s, err := b.stream(ctx)
	if err != nil {
		return nil, false, time.Time{}, err
	}
	subjects, now, err := s.subjects(ctx, namePrefix+">")
	if err != nil {
		return nil, false, now, err
	}
	all = true
	for subject := range subjects {
		o, err := s.object(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			all = false // pruned since
			continue
		}
		if err != nil {
			return nil, false, now, err
		}
		if !o.info.Deleted {
			objects = append(objects, o)
		}
	}
	slices.SortFunc(objects, func(a, b Object) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Name, a.Name)) })
	return objects, all, now, nil
}

// Find returns the snapshot with this name, or ErrNotFound.
func (b *Bucket) Find(ctx context.Context, name string) (Object, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return Object{}, err
	}
	o, err := s.object(ctx, nameSubject(name))
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && o.info.Deleted {
		return Object{}, ErrNotFound
	}
	return o, err
}

// otherHistories is how many earlier histories of a stream keep their snapshots.
const otherHistories = 4

// Prune deletes all but the newest keep snapshots of just's stream and history, and all snapshots
// of the stream's other histories except the four that were put last. It returns their names. The
// newest snapshots have the highest sequences, so changing a clock has no effect. Prune never
// deletes just, which has just been put, and no name of another program.
func (b *Bucket) Prune(ctx context.Context, just Object, keep int) (erased []string, err error) {
	objects, _, err := b.List(ctx)
	if err != nil {
		return nil, err
	}
	s, err := b.stream(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range excess(objects, just, keep) {
		if err := s.erase(ctx, o); err != nil {
			return erased, fmt.Errorf("%s: %w", o.Name, err)
		}
		erased = append(erased, o.Name)
	}
	return erased, nil
}

// excess returns the objects that Prune deletes.
func excess(objects []Object, just Object, keep int) (erase []Object) {
	var own []Object
	histories := map[string][]Object{}
	for _, o := range objects {
		history, ok := historyOf(o.Name, just.Manifest.Stream)
		switch {
		case !ok || o.Name == just.Name:
		case history == hashOf(just.Manifest.HistoryName()):
			own = append(own, o)
		default:
			histories[history] = append(histories[history], o)
		}
	}
	slices.SortFunc(own, func(a, b Object) int { return cmp.Compare(b.Name, a.Name) }) // by sequence first: see nameOf
	erase = own[min(max(keep-1, 0), len(own)):]
	others := slices.SortedFunc(maps.Values(histories), func(a, b []Object) int { return cmp.Compare(lastPut(b), lastPut(a)) })
	return append(erase, slices.Concat(others[min(otherHistories, len(others)):]...)...)
}

// lastPut returns the position in the bucket's stream at which the last of objects was put.
func lastPut(objects []Object) (last uint64) {
	for _, o := range objects {
		last = max(last, o.put)
	}
	return last
}

// RemoveOrphans deletes old chunks without a name, which a killed Put has left, and returns the
// number of their objects. If it cannot read every name, it deletes nothing.
func (b *Bucket) RemoveOrphans(ctx context.Context) (removed int, err error) {
	objects, all, _, err := b.list(ctx) // before the chunks: those put in between are young
	if err != nil || !all {
		return 0, err
	}
	named := map[string]bool{}
	for _, o := range objects {
		named[chunkPrefix+o.info.NUID] = true
	}
	s, err := b.stream(ctx)
	if err != nil {
		return 0, err
	}
	subjects, now, err := s.subjects(ctx, chunkPrefix+">")
	if err != nil {
		return 0, err
	}
	for subject := range subjects {
		if named[subject] {
			continue
		}
		last, err := s.last(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && now.Sub(last.Time) < b.orphanAfter {
			continue // deleted since, or perhaps of a Put in progress
		}
		if err == nil {
			err = s.purge(ctx, subject)
		}
		if err != nil {
			return removed, fmt.Errorf("chunks %s: %w", strings.TrimPrefix(subject, chunkPrefix), err)
		}
		removed++
	}
	return removed, nil
}

// timeLayout is the layout of times in names: it sorts, and needs no quoting.
const timeLayout = "20060102T150405.000Z"

// nameOf returns the name of the archive with this manifest. Names of one stream and history sort
// by sequence, digest and time. A history's name may be any text, so the name has its hash.
func nameOf(m snapshots.Manifest) string {
	return fmt.Sprintf("%s-%s-%020d-%.8s-%s", m.Stream, hashOf(m.HistoryName()), m.Sequence, m.Digest, m.Time.UTC().Format(timeLayout))
}

func hashOf(history string) string { return fmt.Sprintf("%.4x", sha256.Sum256([]byte(history))) }

// afterStream matches the part after the stream in a name that nameOf has made.
var afterStream = regexp.MustCompile(`^-([0-9a-f]{8})-[0-9]{20}-[0-9a-f]{8}-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z$`)

// historyOf returns the hash of the history in a name that nameOf has made for this stream.
func historyOf(name, stream string) (hash string, ok bool) {
	rest, ok := strings.CutPrefix(name, stream)
	if parts := afterStream.FindStringSubmatch(rest); ok && parts != nil {
		return parts[1], true
	}
	return "", false
}

func nameSubject(name string) string {
	return namePrefix + base64.URLEncoding.EncodeToString([]byte(name))
}

// stream is the bucket's stream. Each of its methods makes one request, or one for each of its
// parts.
type stream struct {
	b *Bucket
	jetstream.Stream
}

// stream finds the bucket's stream.
func (b *Bucket) stream(ctx context.Context) (stream, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, streamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return stream{}, ErrNoBucket
	}
	return stream{b, s}, b.explain(err, jetstream.DefaultAPIPrefix+"STREAM.INFO."+streamName)
}

// explain is natserr.Explain.
func (b *Bucket) explain(err error, subject string) error {
	return natserr.Explain(b.js.Conn(), err, subject)
}

// subjects returns the subjects that match filter, each with the number of its messages, and the
// broker's time.
func (s stream) subjects(ctx context.Context, filter string) (map[string]uint64, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, time.Time{}, s.b.explain(err, jetstream.DefaultAPIPrefix+"STREAM.INFO."+streamName)
	}
	if info.Cluster != nil && info.Cluster.Leader == "" {
		return nil, time.Time{}, leader.ErrLeaderless
	}
	return info.State.Subjects, info.TimeStamp, nil
}

// leader returns the stream as its leader knows it. Any replica may answer a direct get, and one
// that lags reports "no message" for an acknowledged one.
func (s stream) leader() leader.Stream { return leader.Stream{JS: s.b.js, Name: streamName} }

// last returns the last message of subject, or jetstream.ErrMsgNotFound, as its leader knows it.
func (s stream) last(ctx context.Context, subject string) (leader.Message, error) {
	return s.leader().LastMessage(ctx, subject)
}

// directGet begins the subject of every direct get.
const directGet = jetstream.DefaultAPIPrefix + "DIRECT.GET." + streamName

func (s stream) object(ctx context.Context, subject string) (Object, error) {
	m, err := s.last(ctx, subject)
	if err != nil {
		return Object{}, err
	}
	o := Object{Time: m.Time, subject: subject, put: m.Sequence}
	if err := json.Unmarshal(m.Data, &o.info); err != nil {
		name, _ := base64.URLEncoding.DecodeString(strings.TrimPrefix(subject, namePrefix))
		o.Name, o.Err = string(name), fmt.Errorf("not an object: %w", err)
		return o, nil
	}
	o.Name, o.Bytes = o.info.Name, o.info.Size
	o.Manifest, o.Err = snapshots.ParseManifest([]byte(o.info.Metadata[manifestLabel]))
	return o, nil
}

// erase deletes the name, then the chunks. Nothing remains in the stream.
func (s stream) erase(ctx context.Context, o Object) error {
	err := s.purge(ctx, o.subject)
	if err == nil && o.info.NUID != "" {
		err = s.purge(ctx, chunkPrefix+o.info.NUID)
	}
	return err
}

func (s stream) purge(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := s.Purge(ctx, jetstream.WithPurgeSubject(subject))
	return s.b.explain(err, jetstream.DefaultAPIPrefix+"STREAM.PURGE."+streamName)
}
