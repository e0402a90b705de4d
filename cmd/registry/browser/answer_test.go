//go:build unix && !race && nightly

package browser

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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
						if c.list == "legit" && (strings.HasPrefix(missing, "appeal") || strings.HasPrefix(missing, "reason")) {
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
					tb.picture("answer-" + c.list + "-" + c.status + "-" + by)
				}
			}
		})
	}
}

// TestNameHasRoom: at no width does the id take the name's place.
func TestNameHasRoom(t *testing.T) {
	t.Parallel()
	_, id := someone(t, "scammers", "verified")
	tb := open(t, shared.site, look{width: 320, height: 740})
	tb.get(search(id))
	for _, width := range []int64{320, 577, 767, 769} {
		tb.resize(look{width: width, height: 740})
		if room := eval[float64](tb, `document.querySelector(".who h2").getBoundingClientRect().width`); room < 150 {
			t.Errorf("at %d: the name has %.0f pixels", width, room)
		}
	}
}

// TestPastesInTheField: what is typed into the field is understood, with scripts and without.
func TestPastesInTheField(t *testing.T) {
	t.Parallel()
	name, id := someone(t, "scammers", "verified")
	spaced := id[:4] + " " + id[4:8] + " " + id[8:12] + " " + id[12:]
	for i, prepare := range []func(*tab) *tab{same, (*tab).withoutScripts} {
		tb := prepare(open(t, shared.site, phone(i > 0)))
		for paste, want := range map[string]string{
			"@" + name: "Na liście oszustów jest konto o tej nazwie", `"` + name + `",`: "to nazwa z listy oszustów",
			spaced: "To konto jest na liście oszustów", "discord.com/users/" + id: "To konto jest na liście oszustów", name + " " + spaced: "To konto jest na liście oszustów",
			"https://discord.gg/abc": "Z zaproszenia nie da się odczytać serwera",
		} {
			tb.get("/")
			tb.loads(chromedp.SendKeys(chromedp.CSS("#q"), paste+kb.Enter))
			tb.wants(want)
			if got := eval[string](tb, `document.querySelector("#q").value`); got != paste {
				t.Errorf("the field holds %q, want %q", got, paste)
			}
		}
	}
}

// TestFieldComesEarly: on the front page one types at once; after an answer two keys lead to the
// field.
func TestFieldComesEarly(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, desk(false))
	tb.get("/")
	tb.until(`document.activeElement.id === "q"`)
	tb.get(search("żabcia2013"))
	tb.tab()
	tb.tab()
	tb.press(kb.Enter, `document.activeElement.id === "q"`)
}

// TestTouchOpensNoKeyboard: on a touch screen the field of the front page does not take the focus
// by itself.
func TestTouchOpensNoKeyboard(t *testing.T) {
	t.Parallel()
	tb := open(t, shared.site, phone(false))
	call(tb, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
	tb.get("/")
	if on := eval[string](tb, `document.activeElement.id`); on == "q" {
		t.Error("the field has the focus")
	}
}

// TestIDIsCopied: the button copies the id without spaces, and says so.
func TestIDIsCopied(t *testing.T) {
	t.Parallel()
	_, id := someone(t, "scammers", "verified")
	tb := open(t, shared.site, phone(false))
	tb.get("/?id=" + id)
	tb.do(chromedp.Evaluate[chromedp.Void](`Object.defineProperty(navigator, "clipboard", {value: {writeText: async text => { window.copied = text; }}})`))
	tb.buttons("Kopiuj ID", ".copyid")
	tb.do(click(".copyid"))
	tb.until(`document.querySelector(".copyid").textContent === "Skopiowano"`)
	if said := eval[string](tb, `document.querySelector("#powiedziane[role=status]").textContent`); said != "Skopiowano ID" {
		t.Errorf("read out: %q", said)
	}
	if clipped := eval[bool](tb, `(e => e.scrollWidth > e.clientWidth || e.getBoundingClientRect().width < 60)(document.querySelector(".copyid span"))`); clipped {
		t.Error("a phone does not show that it was copied")
	}
	if copied := eval[string](tb, `window.copied`); copied != id {
		t.Errorf("copied %q, want %q", copied, id)
	}
	if selected := eval[string](tb, `(getSelection().selectAllChildren(document.querySelector(".who .id")), getSelection().toString())`); selected != id {
		t.Errorf("whoever copies by hand gets %q, want %q", selected, id)
	}
}

// TestEmergencyCard: one tap leads from the answer to whom to call, in buttons that a thumb hits, and
// the kinds of payment open without scripts. A registry that cannot answer has the card too.
func TestEmergencyCard(t *testing.T) {
	t.Parallel()
	_, id := someone(t, "scammers", "verified")
	for _, at := range []struct {
		site   *registrytest.Server
		status int64
		path   string
	}{{shared.site, 200, "/?id=" + id}, {shared.site, 404, "/nie-ma"}, {shared.loading, 503, "/?id=" + id}} {
		tb := open(t, at.site, phone(false)).withoutScripts()
		tb.expect("Failed to load resource")
		if status := tb.get(at.path); status != at.status {
			t.Errorf("%s: status %d", at.path, status)
		}
		if at.status == 200 {
			tb.do(click(".jumps .sos"))
			tb.until(`Math.abs(document.querySelector("#po-wplacie").getBoundingClientRect().top) < 40`)
		}
		for _, small := range eval[[]string](tb, `[...document.querySelectorAll(".paid ol a")].filter(e => e.getBoundingClientRect().height < 48).map(e => e.textContent)`) {
			t.Errorf("%s: a small button: %s", at.path, small)
		}
		if strings.Contains(tb.text(), "CERT Polska.") {
			t.Errorf("%s: open before", at.path)
		}
		tb.do(click(".paid details:last-of-type summary"))
		tb.wants("Zadzwoń do swojego banku", "828 828 828", "112", "paysafecard", "incydent.cert.pl")
	}
}

// TestStepsToTheID: the steps unfold in the banner, and the field stands at their end; nothing leads
// away from the answer.
func TestStepsToTheID(t *testing.T) {
	t.Parallel()
	name, id := someone(t, "legit", "all")
	tb := open(t, shared.site, phone(false)).withoutScripts()
	tb.get(search(name))
	tb.do(click(".askid summary"))
	tb.wants("Kopiuj ID użytkownika")
	if !eval[bool](tb, `document.querySelector(".steps").getBoundingClientRect().bottom <= document.querySelector("#qid").getBoundingClientRect().top`) {
		t.Error("the field does not stand below the steps")
	}
	tb.loads(chromedp.SendKeys(chromedp.CSS("#qid"), id+kb.Enter))
	tb.wants("To ID osoby zaufanej: " + name)
}
