package site

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel/reason"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

//go:embed favicon.ico
var favicon []byte

// Favicon returns the site's icon, an ICO file with 16, 32 and 48 pixels.
func Favicon() []byte { return favicon }

// Config configures a Site: what pages say about their service.
type Config struct {
	BaseURL    string     // the public address of the service, without a trailing slash; if empty, pages use paths
	Build      string     // identifies the program; a part of every page's tag, so that clients fetch pages again from another program
	AppealsURL string     // where an accused person appeals, an address that ParseAppeals accepts; if empty, pages name none
	ReportURL  string     // where people report a fraud, an address that CheckReports accepts; if empty, pages name none
	Proofs     bool       // /proofs/{id} exists
	Advice     string     // for somebody who has already paid, in Markdown; if empty, this package's own text
	About      string     // who runs the registry, in Markdown; if empty, a neutral text
	Demo       []Question // links of the first page; if not nil, every page says that it is a demonstration
}

// Question is a link of a demonstration, which a visitor can try.
type Question struct {
	Text  string // of the link
	Asked string // what the link checks
}

// Link returns the address of the question's answer.
func (q Question) Link() string { return "/?" + url.Values{"search": {q.Asked}}.Encode() }

// Site makes pages. It never changes, and any goroutine may use it.
type Site struct {
	cfg     Config
	appeals Appeals
	pages   map[string]*template.Template
	paid    template.HTML // advice for somebody who has already paid
	about   template.HTML
	assets  map[string]Asset // by their name in templates
	version string
}

// New reads the templates and assets. The caller has checked the addresses in cfg. New panics if the build is broken.
func New(cfg Config) *Site {
	// The version is a hash of the configuration. Build is a part of it, so another program has another version.
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", cfg))
	s := &Site{
		cfg:     cfg,
		appeals: Appeals(cfg.AppealsURL),
		paid:    renderText(cfg.Advice, defaultAdvice, underPartHeading),
		about:   renderText(cfg.About, defaultAbout, underPageHeading),
		assets:  readAssets(),
		version: hex.EncodeToString(sum[:6]),
	}
	s.pages = s.readPages()
	return s
}

// readPages parses the templates, each page with the files whose names begin with _: the frame and the parts.
func (s *Site) readPages() map[string]*template.Template {
	pages := map[string]*template.Template{}
	for name := range readFiles(templateFiles, "templates/[^_]*.html") {
		page := template.New("").Funcs(s.templateFuncs())
		pages[strings.TrimSuffix(name, ".html")] = template.Must(page.ParseFS(templateFiles, "templates/_*.html", "templates/"+name))
	}
	return pages
}

// readFiles returns the embedded files that a pattern matches, by name.
func readFiles(embedded embed.FS, pattern string) map[string][]byte {
	paths, _ := fs.Glob(embedded, pattern) // fails only for a bad pattern
	files := map[string][]byte{}
	for _, p := range paths {
		files[path.Base(p)], _ = embedded.ReadFile(p) // cannot fail for a path of Glob
	}
	return files
}

func (s *Site) templateFuncs() template.FuncMap {
	return template.FuncMap{
		"asset":     s.assetPath,
		"absolute":  func(path string) string { return s.cfg.BaseURL + path },
		"based":     func() bool { return s.cfg.BaseURL != "" },
		"appeal":    s.appeals.AddressFor,
		"appeals":   func() string { return s.appeals.AddressFor("") }, // for no report
		"reports":   func() string { return s.cfg.ReportURL },
		"demo":      func() []Question { return s.cfg.Demo },
		"proofs":    func() bool { return s.cfg.Proofs },
		"about":     func() template.HTML { return s.about },
		"paid":      func() template.HTML { return s.paid },
		"day":       formatDay,
		"moment":    func(t time.Time) string { return formatTime(t, "15:04") },
		"second":    func(t time.Time) string { return formatTime(t, "15:04:05") },
		"iso":       func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"isoMillis": func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
		"groups":    inFours,
		"maxSearch": func() int { return bounds.MaxSearch },
	}
}

// Content is the content of a page: a [CheckPage], [EntryPage], [ListPage], [SearchPage], [StatusPage], [AboutPage],
// [APIPage], [BotsPage], or a [Failed] request.
type Content interface{ page() page }

// page is one page in its frame. template, Title and Data are required.
type page struct {
	template  string    // the file without .html
	Title     string    // of the document, before the name of the site
	SiteName  string    // the name of the site in the title, if not fullName
	Path      string    // the page's place in the navigation, such as "/scammers"; may be empty
	About     string    // for search engines and previews; without it, these choose their own
	Canonical string    // the path of the page, if several lead to it
	Preview   string    // the title in previews, if not Title; chats keep previews, so it has no person's name
	AsOf      time.Time // when stale data was last known to be complete; zero for current data
	Data      any       // of the page's own template
}

// The names of the site in titles. fullName means "register of scammers": on a page about a person, it would accuse the person.
const (
	fullName    = "Rejestr oszustów"
	neutralName = "Rejestr"
)

// Append appends the page of a content to dst.
func (s *Site) Append(dst []byte, c Content) ([]byte, error) {
	p := c.page()

	// Plain drops bidirectional controls: in a person's name, they could reorder our own words in the same title.
	p.Title = reason.Plain(p.Title)
	p.Preview = cmp.Or(p.Preview, p.Title)
	p.SiteName = cmp.Or(p.SiteName, fullName)

	out := bytes.NewBuffer(dst)
	if err := s.pages[p.template].ExecuteTemplate(out, "frame", p); err != nil {
		return dst, fmt.Errorf("site: page %q: %w", p.template, err)
	}

	// The bytes that dst had before are not a part of the page.
	blankControls(out.Bytes()[len(dst):])
	return out.Bytes(), nil
}

// blankControls puts spaces in place of control characters. Only the data in a page can have control characters: browsers
// ignore them, but a terminal obeys them.
func blankControls(page []byte) {
	for i, b := range page {
		isControl := b < ' ' || b == 0x7f
		isLayout := b == '\n' || b == '\t'
		if isControl && !isLayout {
			page[i] = ' '
		}

		// UTF-8 writes U+0080 to U+009F as the byte 0xc2 and a byte below 0xa0.
		if b == 0xc2 && i+1 < len(page) && page[i+1] < 0xa0 {
			page[i] = ' '
			page[i+1] = ' '
		}
	}
}

// Version changes whenever a page may look different although its content is the same. Every page's entity tag contains the
// version.
func (s *Site) Version() string { return s.version }

// Asset is a file that pages refer to. Its path contains a hash of its body, so it never changes.
type Asset struct {
	Path string // /assets/site.<hash>.css
	Type string // media type
	Body []byte
}

// Assets returns the files that pages refer to.
func (s *Site) Assets() []Asset { return slices.Collect(maps.Values(s.assets)) }

func (s *Site) assetPath(name string) (string, error) {
	a, ok := s.assets[name]
	if !ok {
		return "", fmt.Errorf("no asset %q", name)
	}
	return a.Path, nil
}

func readAssets() map[string]Asset {
	media := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".png": "image/png"}
	assets := map[string]Asset{}
	for name, body := range readFiles(assetFiles, "assets/*") {
		// The path has a hash of the body, so caches may keep the file forever.
		ext := path.Ext(name)
		sum := sha256.Sum256(body)
		hashed := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
		assets[name] = Asset{Path: "/assets/" + hashed, Type: media[ext], Body: body}
	}
	return assets
}
