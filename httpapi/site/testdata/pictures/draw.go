// Command pictures draws assets/share-*.png, assets/touch.png and favicon.ico from pictures.html,
// with chromium: go run ./testdata/pictures, in httpapi/site.
package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

func main() {
	log.SetFlags(0)
	if err := drawAll(); err != nil {
		log.Fatal(err)
	}
}

func drawAll() error {
	for _, verdict := range []string{"home", "accused", "risk", "caution", "trusted", "trusted-name", "unchecked", "none"} {
		if err := drawFile("assets/share-"+verdict+".png", verdict, 1200, 630); err != nil {
			return err
		}
	}
	if err := drawFile("assets/touch.png", "icon180", 180, 180); err != nil {
		return err
	}
	var icons [][]byte
	sizes := []int{16, 32, 48}
	for _, size := range sizes {
		p, err := picture(fmt.Sprint("icon", size), size, size)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := png.Encode(&out, p); err != nil {
			return err
		}
		icons = append(icons, out.Bytes())
	}
	return os.WriteFile("favicon.ico", ico(sizes, icons), 0o644)
}

func drawFile(file, name string, width, height int) error {
	p, err := picture(name, width, height)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, reduce(p)); err != nil {
		return err
	}
	fmt.Println(file, out.Len())
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// picture makes chromium draw a picture. Its window is larger, because a headless one keeps some
// pixels to itself.
func picture(name string, width, height int) (image.Image, error) {
	dir, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	page, err := filepath.Abs("testdata/pictures/pictures.html")
	if err != nil {
		return nil, err
	}
	shot := filepath.Join(dir, "shot.png")
	out, err := exec.Command("chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=1",
		"--default-background-color=00000000", fmt.Sprintf("--window-size=%d,%d", max(width, 500), height+200), "--screenshot="+shot,
		"--user-data-dir="+filepath.Join(dir, "profile"), "file://"+page+"#"+name).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("chromium: %w: %s", err, out)
	}
	f, err := os.Open(shot)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := png.Decode(f)
	if err != nil {
		return nil, err
	}
	cut := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.Draw(cut, cut.Bounds(), all, image.Point{}, draw.Src)
	return cut, nil
}

// reduce keeps the 16 most frequent colors.
func reduce(p image.Image) image.Image {
	counts := map[color.Color]int{}
	b := p.Bounds()
	for y := range b.Dy() {
		for x := range b.Dx() {
			counts[p.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) })
	small := image.NewPaletted(b, colors[:min(len(colors), 16)])
	draw.Draw(small, b, p, image.Point{}, draw.Src)
	return small
}

// ico makes an ICO file of PNGs.
func ico(sizes []int, pngs [][]byte) []byte {
	out := []byte{0, 0, 1, 0, byte(len(pngs)), 0}
	at := uint32(len(out) + 16*len(pngs))
	for i, p := range pngs {
		out = append(out, byte(sizes[i]), byte(sizes[i]), 0, 0, 1, 0, 32, 0)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(p)))
		out = binary.LittleEndian.AppendUint32(out, at)
		at += uint32(len(p))
	}
	for _, p := range pngs {
		out = append(out, p...)
	}
	return out
}
