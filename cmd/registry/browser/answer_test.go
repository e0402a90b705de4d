//go:build unix && !race && nightly

package browser

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
)

// someone returns an entry of the demonstration that is the only one of its name.
func someone(t *testing.T, list, status string) (name, id string) {
	t.Helper()
	var page struct {
		Data []struct{ Name, ID string }
	}
	read(t, "/api/"+list+"?limit=60&sort=oldest&status="+status, &page)
	for _, e := range page.Data {
		var found struct {
			Results []struct{ Entries []struct{ Name string } }
		}
		read(t, "/api/check?search="+url.QueryEscape(e.Name), &found)
		if len(found.Results) == 1 && len(found.Results[0].Entries) == 1 && len([]rune(e.Name)) <= 20 {
			return e.Name, e.ID
		}
	}
	t.Fatalf("nobody on %s, %s, has a name of their own", list, status)
	return "", ""
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	resp, err := http.Get(shared.site.HTTP + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
}

// below lists what an answer has that does not end within the screen, or is not there.
const below = `(() => {
	const out = [];
	document.querySelector(".demo")?.remove(); // a real registry has no such line
	for (const [what, selector] of Object.entries({form: "form.ask", verdict: ".verdict h1", picture: ".who :is(img, .noimg)", name: ".who h2", id: ".who .id",
			copy: ".who .copyid", date: ".who .when", reason: ".who .gist", field: "#qid", advice: ".advice ol", paid: ".jumps .sos", appeal: ".jumps [href='#odwolanie']"})) {
		const e = document.querySelector(selector), r = e?.getBoundingClientRect();
		if (!r || !(r.height > 0 && r.top >= 0 && r.bottom <= innerHeight)) out.push(what + " " + (r ? Math.round(r.top) + "–" + Math.round(r.bottom) : "missing"));
	}
	return out;
})()`

// TestAnswerNeedsNoScrolling: on a phone of 360 × 740 the verdict, who it is, what was reported, what
// to do now and the ways to the emergency card and to the appeal are seen at once, with scripts and
// without.
func TestAnswerNeedsNoScrolling(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*tab) *tab{"scripts": same, "without-scripts": (*tab).withoutScripts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := prepare(open(t, shared.site, look{width: 360, height: 740, mobile: true}))
			for _, c := range []struct{ list, status string }{{"scammers", "verified"}, {"scammers", "risk"}, {"servers", "verified"}, {"legit", "all"}} {
				name, id := someone(t, c.list, c.status)
				for by, question := range map[string]string{"name": name, "id": id} {
					tb.get(search(question))
					for _, missing := range eval[[]string](tb, below) {
						if c.list == "legit" && (strings.HasPrefix(missing, "appeal") || strings.HasPrefix(missing, "reason") || strings.HasPrefix(missing, "paid")) {
							continue // nobody accuses them
						}
						if by == "name" && (strings.HasPrefix(missing, "appeal") || strings.HasPrefix(missing, "paid")) {
							continue // the field for the ID stands before them
						}
						if by == "id" && strings.HasPrefix(missing, "field") {
							continue // there is an ID
						}
						t.Errorf("%s, %s, %s: not within the screen: %s", c.list, c.status, question, missing)
					}
					if shown := eval[string](tb, `document.querySelector(".who .id").textContent`); shown != id {
						t.Errorf("%s, %s, %s: the id is %q, want %q", c.list, c.status, question, shown, id)
					}
				}
			}
		})
	}
}

// TestEmergencyCard: one tap leads from the answer to whom to call, in buttons that a thumb hits, without scripts. A registry
// that cannot answer has the card too.
func TestEmergencyCard(t *testing.T) {
	t.Parallel()
	_, id := someone(t, "scammers", "verified")
	for _, at := range []struct {
		site   *registrytest.Server
		status int64
		way    string
	}{{shared.site, 200, ".jumps .sos"}, {shared.loading, 503, ".paid summary"}} {
		tb := open(t, at.site, phone(false)).withoutScripts()
		tb.expect("Failed to load resource")
		if status := tb.get("/?id=" + id); status != at.status {
			t.Errorf("status %d, want %d", status, at.status)
		}
		tb.do(click(at.way))
		tb.until(`document.querySelector("#po-wplacie").getBoundingClientRect().top < innerHeight && document.querySelector(".paid").open`)
		for _, small := range eval[[]string](tb, `[...document.querySelectorAll(".paid ol a")].filter(e => e.getBoundingClientRect().height < 48).map(e => e.textContent)`) {
			t.Errorf("%d: a small button: %s", at.status, small)
		}
		tb.wants("Zadzwoń do swojego banku", "828 828 828", "112", "paysafecard", "incydent.cert.pl")
	}
}
