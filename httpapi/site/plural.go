package site

import "strconv"

// forms are a noun in the three forms that Polish numbers ask for: 1 wpis, 2 wpisy, 5 wpisów.
type forms struct{ one, few, many string }

func entries() forms { return forms{"wpis", "wpisy", "wpisów"} }

// count is n with its noun. n is not negative.
func (f forms) count(n int) string { return number(n) + "\u00a0" + f.of(n) }

// of picks the form for n: one for 1, few for what ends in 2, 3 or 4 but not in 12, 13 or 14.
func (f forms) of(n int) string {
	switch tens, ones := n/10%10, n%10; {
	case n == 1:
		return f.one
	case ones >= 2 && ones <= 4 && tens != 1:
		return f.few
	default:
		return f.many
	}
}

// number is n with its thousands set apart, from five digits on, as is the custom in Polish.
func number(n int) string {
	s := strconv.Itoa(n)
	if len(s) < 5 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u00a0" + s[i:]
	}
	return s
}
