package site

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// Asset is a file that pages refer to. Its path holds a hash of its body, so it never changes.
type Asset struct {
	Path string // /assets/site.<hash>.css
	Type string // media type
	Body []byte
}

// readAssets reads the embedded files; the keys are the names that templates call them by.
func readAssets() (map[string]Asset, error) {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("site: assets: %w", err)
	}
	assets := make(map[string]Asset, len(entries))
	for _, e := range entries {
		body, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("site: assets: %w", err)
		}
		ext := path.Ext(e.Name())
		kind, known := mediaType(ext)
		if !known {
			return nil, fmt.Errorf("site: assets: %s has no known media type", e.Name())
		}
		sum := sha256.Sum256(body)
		name := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		assets[e.Name()] = Asset{Path: "/assets/" + name, Type: kind, Body: body}
	}
	return assets, nil
}

func mediaType(ext string) (kind string, known bool) {
	switch ext {
	case ".css":
		return "text/css; charset=utf-8", true
	case ".js":
		return "text/javascript; charset=utf-8", true
	case ".svg":
		return "image/svg+xml", true
	case ".png":
		return "image/png", true
	}
	return "", false
}
