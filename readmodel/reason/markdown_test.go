package reason

import (
	"strings"

	"pgregory.net/rapid"
)

// markers returns the constructs of CommonMark, and parts of them.
func markers() []string {
	return []string{
		"- ", "-\n", "1. ", "2. ", "3. ", "1) ", "12. ", "+ ", "* ", ">", "> ", "> - ", "> - 1. ", "-\t", "# ", "#\n", "```", "~~~\n", "~~~ x9\n", "    ", "\t", "---\n", "===\n", "\n", " \n", "x\n", "\\\n", "  \n",
		"*", "_", "**a ", "*a_ ", "*a**a ", "_a_", "~", "~~", "~~a ", "~~~a", "`", "`a``", "[", "]", "[a]", "[a] ", "[a](", "[a](<b", "[a](b \"", "[a](b 'c')", "[a](b (c))", "[a](http://a.pl/5)", "[](http://a.pl/6)",
		"[b.pl](http://a.pl)", "![", "![a](", "![a]", "![a](http://a.pl)", "![](x7)", "[[]", "[a]: b\n", "[a]: <b> 'c'\n\n", "[a][a]", "<", ">", "<a ", "<a@b.pl>", "<http://a.pl>", "<irc:a>",
		"<!--", "-->", "<?", "<![CDATA[", "<!A", "<div>\n", "<p>", "</p>", "<b>", "</b>", "<br/>", "<b x=1>", "<B>", "<pre>", "<x>", "http://a.pl ", "http://a.", "http://_", "http:", "https://a.pl/b", "a@b ",
		"&", "&amp;", "&#1;", "&#65;", "&oacute;", "&#x202e;", "&#x301;", "\"", "\\", "(", ")", "ż", "\x01", "a", "\u0301", "\u202e", "\r\n",
	}
}

// typed returns what people type.
func typed() []string {
	return []string{
		"12. maja", "3. 05. 2026 r.", "21.11.2026", "1. wpłata", "2) przelew", "500 zł", "1 200,50 zł", "5~7 dni", "10*20*30", "2~3 z 8~9 rat", "600 700 800", "+48 600-700-800", "501502503) to BLIK",
		"PL61 1090 1014 0000 0712 1981 2874", "[Blik]: 500600700", "[21:37] Kamil: daj", "[21:38]: ok", "<Kamil> wyślij", "<Ja>: nie", "**Kwota:** 500", "~~500~~ 300", "nick_z_kreską", "__init__", "~Kamil~",
		"#1234", "# 1234", "@kamil", "<@123456789012345678>", "https://bank.example/login?a=1&b=2", "(https://a.pl/x)", "https://pl.wikipedia.org/wiki/Łódź", "www.a.pl", "jan@a.pl", "```Kamil: daj 500", "~~~ potem 5",
		"- kwota: 150", "* forma: BLIK", "> cytat 1", "1. a\n2. b\n3. c", "1. a\n1. b", "<p>Wziął 500</p>", "<br>", "[dowód](https://a.pl/d \"zrzut 7\")", "![zrzut 8](https://a.pl/z.png)", "&lt;b&gt;", "5 < 7 > 3", "C:\\dane\\x",
	}
}

// someMarkdown draws reasons: single constructs and what people type, joined in several ways, and a
// construct repeated before another.
func someMarkdown() *rapid.Generator[string] {
	pieces := rapid.SampledFrom(append(markers(), typed()...))
	between := rapid.SampledFrom([]string{"", "", " ", "\n", "\n", "\n\n"})
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		if rapid.IntRange(0, 3).Draw(t, "repeat") == 0 {
			b.WriteString(strings.Repeat(pieces.Draw(t, "opener"), rapid.IntRange(1, 20).Draw(t, "n")) + between.Draw(t, "between"))
			b.WriteString(strings.Repeat(pieces.Draw(t, "line"), rapid.IntRange(1, 20).Draw(t, "m")))
		}
		for range rapid.IntRange(1, 10).Draw(t, "pieces") {
			b.WriteString(between.Draw(t, "between") + pieces.Draw(t, "piece"))
		}
		return b.String()
	})
}
