package upstream

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func avatarSizes() []int { return []int{16, 32, 64, 128, 256, 512} }

func drawn(t testing.TB, id string, size int) ([]byte, *image.Paletted) {
	t.Helper()
	p, err := encodeIdenticon(id, size)
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(p))
	require.NoError(t, err)
	return p, img.(*image.Paletted)
}

// An id looks the same forever. Pixels are compared and not files: another version of Go may
// compress otherwise. go test ./httpapi/upstream -run Golden -update writes new files, which nobody
// should ever have to do.
func TestGoldenIdenticons(t *testing.T) {
	for _, id := range []string{"1", "100000000000000001", "99004682649769955462", "aB_-"} {
		for _, size := range avatarSizes() {
			p, got := drawn(t, id, size)
			file := filepath.Join("testdata", "identicon_"+id+"_"+strconv.Itoa(size)+".golden.png")
			if *update {
				require.NoError(t, os.WriteFile(file, p, 0o644))
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			want, err := png.Decode(bytes.NewReader(text))
			require.NoError(t, err)
			if difference := differs(got, want); difference != "" {
				t.Errorf("%s at %d: %s", id, size, difference)
			}
		}
	}
}

func differs(got, want image.Image) string {
	if got.Bounds() != want.Bounds() {
		return fmt.Sprintf("%v, want %v", got.Bounds(), want.Bounds())
	}
	for y := range got.Bounds().Dy() {
		for x := range got.Bounds().Dx() {
			r, g, b, a := got.At(x, y).RGBA()
			if wr, wg, wb, wa := want.At(x, y).RGBA(); r != wr || g != wg || b != wb || a != wa {
				return fmt.Sprintf("pixel %d,%d is %v, want %v", x, y, got.At(x, y), want.At(x, y))
			}
		}
	}
	return ""
}

// Every id has a picture with something in it, mirrored, with free edges, and the cells are
// those of its field whatever the size.
func TestIdenticonShape(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		id := rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`).Draw(r, "id")
		size := rapid.SampledFrom(avatarSizes()).Draw(r, "size")
		img := drawIdenticon(id, size)
		ink := 0
		for y := range size {
			for x := range size {
				shade := img.ColorIndexAt(x, y)
				if shade != img.ColorIndexAt(size-1-x, y) {
					r.Fatalf("%d,%d is not mirrored", x, y)
				}
				ink += int(shade)
			}
		}
		for i := range size {
			for _, edge := range []uint8{img.ColorIndexAt(i, 0), img.ColorIndexAt(i, size-1), img.ColorIndexAt(0, i), img.ColorIndexAt(size-1, i)} {
				if edge != 0 {
					r.Fatal("the edge is not free")
				}
			}
		}
		if share := ink * 100 / (size * size); share < 10 || share > 55 {
			r.Fatalf("%d %% of it is ink", share)
		}
		small := drawIdenticon(id, 128)
		for y := range identiconCells {
			for x := range identiconCells {
				if inked(img, x, y) != inked(small, x, y) {
					r.Fatalf("cell %d,%d differs at %d", x, y, size)
				}
			}
		}
	})
}

// inked looks at the middle of a cell.
func inked(img *image.Paletted, x, y int) bool {
	size := img.Rect.Dx()
	cell := identiconCell(size)
	margin := (size - identiconCells*cell) / 2
	return img.ColorIndexAt(margin+x*cell+cell/2, margin+y*cell+cell/2) == 1
}

// Red, amber and green say something else on the site: no drawn picture has these.
func TestIdenticonsSayNothing(t *testing.T) {
	for _, pair := range identiconColors() {
		for _, c := range pair {
			r, g, b := int(c>>16&0xff), int(c>>8&0xff), int(c&0xff)
			if b < r || b < g {
				t.Errorf("%06x is not a cold colour", c)
			}
		}
	}
}
