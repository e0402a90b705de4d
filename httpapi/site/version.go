package site

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

// sources is this package itself: a page is a function of it, too, and so is Version.
//
//go:embed *.go templates/*.html
var sources embed.FS

// Version changes whenever a page may look different although its content is the same. It is part of
// every page's entity tag.
func (s *Site) Version() string { return s.version }

func (s *Site) fingerprint() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %v\n", s.cfg.AppealsURL, s.cfg.Proofs)
	err := fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := sources.ReadFile(name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("site: sources: %w", err)
	}
	for _, a := range s.Assets() {
		fmt.Fprintln(h, a.Path)
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}
