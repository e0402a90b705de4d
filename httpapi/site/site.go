package site

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/microcosm-cc/bluemonday"
)

// MaxPage is the most bytes of a page, before compression and without its pictures.
const MaxPage = 60_000

//go:embed templates/*.html
var templateFiles embed.FS

// Config is what pages say of the place they are at.
type Config struct {
	// AppealsURL is where an accused person appeals. Empty: pages name no address.
	AppealsURL string
	// Proofs says that /proofs/{id} leads somewhere.
	Proofs bool
}

// Site makes pages. Any goroutine may use it; nothing in it changes.
type Site struct {
	cfg     Config
	pages   map[string]*template.Template
	entries *template.Template // one entry
	looks   *template.Template // one name that looks alike
	policy  *bluemonday.Policy
	assets  map[string]Asset
	version string
}

// Page is one page in its frame. The zero values of all but Title and Data are fine.
type Page struct {
	Title string // of the document, before the name of the site
	// Path is the page's place in the navigation, "/scammers" for one. Empty: none.
	Path string
	// About is the description for search engines. Empty: none.
	About string
	// AsOf is when the data was last known to be complete, where that is to be said. Zero: it is up to date.
	AsOf time.Time
	// Data is what the page's own template gets.
	Data any
}

// New reads the templates and assets. Its error would be a broken build.
func New(cfg Config) (*Site, error) {
	s := &Site{cfg: cfg, pages: map[string]*template.Template{}, policy: newPolicy()}
	var err error
	if s.assets, err = readAssets(); err != nil {
		return nil, err
	}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("site: templates: %w", err)
	}
	frame := template.New("").Funcs(s.funcs())
	for _, name := range names {
		if err := s.parse(frame, name); err != nil {
			return nil, fmt.Errorf("site: %s: %w", name, err)
		}
	}
	alone, err := frame.Clone()
	if err != nil {
		return nil, fmt.Errorf("site: %w", err)
	}
	s.entries, s.looks = alone.Lookup("entry"), alone.Lookup("similar")
	s.version, err = s.fingerprint()
	return s, err
}

// parse adds a template. A file whose name begins with _ is part of every page; the others are a page each,
// and stand in the frame as "main". Glob sorts, and _ sorts before the letters.
func (s *Site) parse(frame *template.Template, file string) error {
	text, err := templateFiles.ReadFile(file)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
	if strings.HasPrefix(name, "_") {
		_, err = frame.Parse(string(text))
		return err
	}
	page, err := frame.Clone()
	if err != nil {
		return err
	}
	_, err = page.New("main").Parse(string(text))
	s.pages[name] = page
	return err
}

// Append appends the page that is made of the template of that name.
func (s *Site) Append(dst []byte, name string, p Page) ([]byte, error) {
	t := s.pages[name]
	if t == nil {
		return dst, fmt.Errorf("site: no page %q", name)
	}
	out := bytes.NewBuffer(dst)
	if err := t.ExecuteTemplate(out, "frame", p); err != nil {
		return dst, fmt.Errorf("site: page %q: %w", name, err)
	}
	return out.Bytes(), nil
}

// Assets are the files that pages refer to.
func (s *Site) Assets() []Asset {
	var all []Asset
	for _, a := range s.assets {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b Asset) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (s *Site) funcs() template.FuncMap {
	return template.FuncMap{
		"asset":     func(name string) (string, error) { return s.assetPath(name) },
		"appeals":   func() string { return s.cfg.AppealsURL },
		"proofs":    func() bool { return s.cfg.Proofs },
		"moment":    moment,
		"listPaths": func() []string { return []string{"/scammers", "/servers", "/legit"} },
	}
}

func (s *Site) assetPath(name string) (string, error) {
	a, ok := s.assets[name]
	if !ok {
		return "", fmt.Errorf("no asset %q", name)
	}
	return a.Path, nil
}
