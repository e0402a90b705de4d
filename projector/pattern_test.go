package projector

import "testing"

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		subject, pattern string
		want             bool
	}{
		{"registry.scammers.x", "registry.scammers.x", true}, {"registry.scammers.x", "registry.scammers.*", true},
		{"registry.scammers.x", "registry.>", true}, {"registry.scammers.x", "registry.*.x", true}, {"registry.views.legit.x", "registry.>", true},
		{"registry.scammers.x", "registry.scammers.>", true}, {"registry.scammers.*", "registry.scammers.*", true},
		{"registry.views.legit.x", "registry.*.x", false}, {"registry.views.legit.x", "registry.views.*", false},
		{"registry.scammers", "registry.scammers.>", false}, {"registry.scammers", "registry.scammers.*", false},
		{"registry.scammers.xy", "registry.scammers.x", false}, {"registry.scammers.x", "registry.scammers.xy", false},
		{"registry.scammers.x", "registry.scammers", false}, {"", "registry.>", false},
	} {
		if got := matches(c.subject, c.pattern); got != c.want {
			t.Errorf("%q, %q: %v", c.subject, c.pattern, got)
		}
	}
	for pattern, good := range map[string]bool{
		"registry.scammers.x": true, "registry.*.x": true, "registry.>": true, "registry-rejected.>": true,
		"registry.scammers.66*": false, "registry.>.x": false, "registry..x": false, "registry.": false, "registry.a b": false, "": false, "registry.a>": false,
	} {
		if err := CheckPattern(pattern); (err == nil) != good {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
