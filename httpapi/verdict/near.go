package verdict

import (
	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel/lookalike"
)

// nearness says how near a subject is to an entry, and in which reading.
func nearness(s *paste.Subject, e *Entry) (near Nearness, as string) {
	if s.ID != "" {
		if s.ID == e.ChatID {
			return Same, s.ID
		}
		return nowhere, ""
	}
	near = nowhere
	for _, n := range s.Names {
		if one := nearName(n, e); one < near {
			near, as = one, n.Text
		}
	}
	return near, as
}

// nearName says how near one reading of a name is to an entry.
func nearName(n paste.Name, e *Entry) Nearness {
	near := nowhere
	switch {
	case n.Text == e.ChatID, paste.Equal(n.Text, e.Name):
		near = Same
	case paste.Equal(lookalike.Visible(n.Text), lookalike.Visible(e.Name)):
		near = Dressed
	case lookalike.KeysOf(n.Text).Joined().Alike(lookalike.KeysOf(e.Name).Joined()):
		near = Alike
	}
	if n.Cleaned {
		near = max(near, Dressed)
	}
	return near
}
