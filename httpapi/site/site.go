package site

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"example.org/registry/events"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/internal/bounds"
)

// MaxPage bounds a page in bytes, before compression. It excludes pictures, and the reason on the
// page of an entry, which reason.MaxHTML bounds. 10,000 bytes are for the style that each
// page contains, and 48,000 for an operator's page about the registry, as the contract promises.
// The pages for developers are the program's own, and not bounded.
const MaxPage = 70_000

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

//go:embed favicon.ico
var favicon string

// Config configures a Site: what pages say about their service.
type Config struct {
	// BaseURL is the public address of the service, without a trailing slash. If empty, pages use
	// paths.
	BaseURL string
	// Build identifies the program, since pages of another one may look different. If empty, their
	// tags change only with the rest of the configuration.
	Build string
	// AppealsURL is where an accused person appeals, as for ParseAppeals. If empty, pages name no
	// address.
	AppealsURL string
	// ReportURL is where people report a fraud, as for CheckReports. If empty, pages name no
	// address.
	ReportURL string
	// Proofs means that /proofs/{id} exists.
	Proofs bool
	// Advice is what to do now, in Markdown (httpapi/CONTRACT.md#advice). If empty, it is the one
	// of this package.
	Advice string
	// Demo makes every page say that the registry is a demonstration, with questions to try on the
	// first page. If nil, it is none.
	Demo []Question
	// About is who runs the registry, in Markdown (httpapi/CONTRACT.md#about). If empty, it is the
	// neutral text of this package.
	About string
}

// Site makes pages. It never changes, and any goroutine may use it.
type Site struct {
	cfg     Config
	appeals Appeals
	pages   map[string]*template.Template
	items   *template.Template // an entry among others
	advice  map[string]advice  // by class of verdict
	about   aboutView
	assets  map[string]Asset
	version string
}

// Page is one page in its frame. Title and Data are required.
type Page struct {
	Title string // of the document, before the name of the site
	// Path is the page's place in the navigation, such as "/scammers". It may be empty.
	Path string
	// About is the description for search engines. It may be empty.
	About string
	// Canonical is the path of the page if several paths lead to it. If it or BaseURL is empty, it
	// is omitted.
	Canonical string
	// Share is the preview of a link to the page. If nil, it is made of Title and About; without
	// About, messengers choose their own.
	Share *Share
	// Named means that the page is about a person, whom its title must not accuse.
	Named bool
	// Finds means that the page has a search field, #q.
	Finds bool
	// Answers means that the page begins with an answer, which is shown before its style sheet has
	// arrived.
	Answers bool
	// AsOf is when stale data was last known to be complete. It is zero for current data.
	AsOf time.Time
	// Data is the data of the page's own template.
	Data any
}

// Brand returns the name of the site at the end of the title.
func (p Page) Brand() string {
	if p.Named || p.Path == "/" && p.Canonical == "" {
		return "Rejestr"
	}
	return "Rejestr oszustów"
}

// New reads the templates and assets. It fails for a bad AppealsURL or ReportURL, an advice that
// [CheckAdvice] rejects, a page that [CheckAbout] rejects, and a broken build.
func New(cfg Config) (*Site, error) {
	s := &Site{cfg: cfg, pages: map[string]*template.Template{}}
	var err error
	if s.appeals, err = ParseAppeals(cfg.AppealsURL); err != nil {
		return nil, fmt.Errorf("site: AppealsURL: %w", err)
	}
	if err := CheckReports(cfg.ReportURL); err != nil {
		return nil, fmt.Errorf("site: ReportURL: %w", err)
	}
	if s.advice, err = readAdvice(cfg.Advice); err != nil {
		return nil, fmt.Errorf("site: advice: %w", err)
	}
	if s.about, err = readAbout(cfg.About); err != nil {
		return nil, fmt.Errorf("site: about: %w", err)
	}
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
	s.items = alone.Lookup("item")
	s.version = s.fingerprint()
	return s, nil
}

// parse adds a template. A file whose name begins with _ is part of every page. Each other file is
// a page, whose template is "main" in the frame. Glob returns them sorted, and _ sorts before the
// letters.
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

// Append appends the page of the template called name.
func (s *Site) Append(dst []byte, name string, p Page) ([]byte, error) {
	t := s.pages[name]
	if t == nil {
		return dst, fmt.Errorf("site: no page %q", name)
	}
	p.Title = withoutBidi(p.Title)
	if p.Share == nil && p.About != "" {
		p.Share = &Share{Title: p.Title, About: p.About}
	}
	out := bytes.NewBuffer(dst)
	if err := t.ExecuteTemplate(out, "frame", p); err != nil {
		return dst, fmt.Errorf("site: page %q: %w", name, err)
	}
	printable(out.Bytes()[len(dst):])
	return out.Bytes(), nil
}

// printable puts spaces in place of the control characters of a page, which only what others wrote can
// have: browsers ignore them, and a terminal obeys.
func printable(page []byte) {
	for i, b := range page {
		switch {
		case b < ' ' && b != '\n' && b != '\t', b == 0x7f:
			page[i] = ' '
		case b == 0xc2 && i+1 < len(page) && page[i+1] < 0xa0: // U+0080 to U+009F
			page[i], page[i+1] = ' ', ' '
		}
	}
}

// withoutBidi returns a title without bidirectional controls: tabs and previews show it in one line
// with our own words, which a name could reverse.
func withoutBidi(title string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, title)
}

func (s *Site) funcs() template.FuncMap {
	return template.FuncMap{
		"asset":     func(name string) (string, error) { return s.assetPath(name) },
		"style":     inlineStyle,
		"absolute":  s.absolute,
		"based":     func() bool { return s.cfg.BaseURL != "" },
		"appeal":    s.appeals.For,
		"appeals":   func() string { return s.appeals.For("") },
		"reports":   func() string { return s.cfg.ReportURL },
		"demo":      func() []Question { return s.cfg.Demo },
		"paid":      func() advice { return s.advice[paidAdvice] },
		"day":       day,
		"groups":    groups,
		"iso":       iso,
		"isoMillis": body.Time,
		"second":    second,
		"moment":    moment,
		"listPaths": listPaths,
		"maxSearch": func() int { return bounds.MaxSearch },
	}
}

// absolute returns the full address of a path, if BaseURL is known.
func (s *Site) absolute(path string) string { return s.cfg.BaseURL + path }

// iso formats a time for datetime attributes.
func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// listPaths returns the page of each list.
func listPaths() (paths []string) {
	for _, l := range events.Lists() {
		paths = append(paths, wordsOf(l).Path)
	}
	return paths
}

func (s *Site) assetPath(name string) (string, error) {
	a, ok := s.assets[name]
	if !ok {
		return "", fmt.Errorf("no asset %q", name)
	}
	return a.Path, nil
}

// Assets returns the files that pages refer to, by path.
func (s *Site) Assets() []Asset {
	var all []Asset
	for _, a := range s.assets {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b Asset) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// Asset is a file that pages refer to. Its path contains a hash of its body, so it never changes.
type Asset struct {
	Path string // /assets/site.<hash>.css
	Type string // media type
	Body []byte
}

// readAssets reads the embedded files. The keys are their names in templates.
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

// Favicon returns the site's icon, an ICO file with 16, 32 and 48 pixels.
func Favicon() []byte { return []byte(favicon) }

// Version changes whenever a page may look different although its content is the same. Every page's
// entity tag contains it.
func (s *Site) Version() string { return s.version }

// fingerprint hashes everything besides their content that pages depend on.
func (s *Site) fingerprint() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", s.cfg))
	return hex.EncodeToString(sum[:6])
}
