package bucket

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/snapshots"
)

// List, Open and the client library's own object store return what Put has put.
func TestPutAndOpen(t *testing.T) {
	t.Parallel()
	b, js := open(t, smallChunks)
	m, packed := archive(t, 200, 7, "one")
	o, err := b.Put(t.Context(), m, bytes.NewReader(packed))
	require.NoError(t, err)
	if o.Bytes != uint64(len(packed)) || o.Err != nil || o.Manifest.Digest != m.Digest || o.info.Chunks < 2 {
		t.Errorf("put %+v", o)
	}
	r, err := b.Open(t.Context(), o)
	require.NoError(t, err)
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, packed) {
		t.Errorf("read %d bytes of %d, %v", len(got), len(packed), err)
	}
	store, err := js.ObjectStore(t.Context(), Name)
	require.NoError(t, err)
	if got, err := store.GetBytes(t.Context(), o.Name); err != nil || !bytes.Equal(got, packed) {
		t.Errorf("the library reads %d bytes of %d, %v", len(got), len(packed), err)
	}
	if _, err := b.Put(t.Context(), m, bytes.NewReader(packed)); err == nil {
		t.Error("a name was put twice")
	}
	if found := names(t, b); len(found) != 1 {
		t.Errorf("listed: %v", found)
	}
	if chunks, _, _ := mustStream(t, b).subjects(t.Context(), chunkPrefix+">"); len(chunks) != 1 {
		t.Errorf("chunks of a refused put are left: %v", chunks)
	}
}

// Missing or changed chunks are an error.
func TestDamagedObjects(t *testing.T) {
	t.Parallel()
	b, js := open(t, smallChunks)
	for name, damage := range map[string]func(t *testing.T, o Object){
		"missing": func(t *testing.T, o Object) {
			require.NoError(t, mustStream(t, b).Purge(t.Context(), jetstream.WithPurgeSubject(chunkPrefix+o.info.NUID), jetstream.WithPurgeKeep(1)))
		},
		"changed": func(t *testing.T, o Object) {
			s := mustStream(t, b)
			m, err := s.GetLastMsgForSubject(t.Context(), chunkPrefix+o.info.NUID)
			require.NoError(t, err)
			m.Data[len(m.Data)/2] ^= 1
			require.NoError(t, s.DeleteMsg(t.Context(), m.Sequence))
			_, err = js.Publish(t.Context(), chunkPrefix+o.info.NUID, m.Data)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := put(t, b, 200, 11, name)
			damage(t, o)
			r, err := b.Open(t.Context(), o)
			require.NoError(t, err)
			archive, err := snapshots.NewReader(r)
			if err == nil {
				err = archive.Verify(t.Context())
			}
			if err == nil {
				t.Error("read to its end")
			}
		})
	}
}

// A Put whose source fails leaves nothing.
func TestFailedPut(t *testing.T) {
	t.Parallel()
	b, _ := open(t, smallChunks)
	errFailing := errors.New("failing")
	m, packed := archive(t, 200, 3, "one")
	failing := io.MultiReader(bytes.NewReader(packed[:len(packed)-1]), iotest.ErrReader(errFailing))
	if _, err := b.Put(t.Context(), m, failing); !errors.Is(err, errFailing) {
		t.Error(err)
	}
	if left, _, err := mustStream(t, b).subjects(t.Context(), ">"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
