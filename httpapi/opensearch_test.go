package httpapi

import (
	"encoding/xml"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The description of the search leads browsers to the person check at the address that they asked.
// Every page names the description.
func TestOpenSearch(t *testing.T) {
	t.Parallel()
	for base, f := range map[string]*fixture{"": serve(t, withSite), "https://rejestr.example": serve(t, withSite, func(c *Config) { c.BaseURL = "https://rejestr.example/" })} {
		if base == "" {
			base = "http://" + f.addr
		}
		a := f.fetch(t, http.MethodGet, "/opensearch.xml")
		var description struct {
			ShortName string
			Image     string
			URL       struct {
				Template string `xml:"template,attr"`
			} `xml:"Url"`
		}
		require.NoError(t, xml.Unmarshal([]byte(a.body), &description))
		if len([]rune(description.ShortName)) > 16 || description.Image != base+"/favicon.ico" || description.URL.Template != base+"/?search={searchTerms}" {
			t.Errorf("%+v", description)
		}
		if kind := a.header.Get("Content-Type"); kind != "application/opensearchdescription+xml" {
			t.Errorf("Content-Type: %s", kind)
		}
		if page := f.fetch(t, http.MethodGet, "/").body; !strings.Contains(page, `<link rel="search" type="application/opensearchdescription+xml" title="Rejestr oszustów" href="/opensearch.xml">`) {
			t.Error("a page does not name the description")
		}
	}
}
