package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Values returns kong options for parsing types whose default errors are Go's.
func Values() []kong.Option {
	return []kong.Option{
		parsed(time.ParseDuration, "is not a duration like 1h or 30m"),
		parsed(func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }, "is not a number like 5 or 0.5"),
		parsed(strconv.Atoi, "is not a whole number like 5"),
		parsed(func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }, "is not a whole number like 5"),
		parsed(func(text string) (level slog.Level, err error) {
			err = level.UnmarshalText([]byte(text))
			return level, err
		}, "is not debug, info, warn or error"),
		kong.TypeMapper(reflect.TypeFor[bool](), switchMapper{}),
	}
}

// parsed parses the values of a type. mistake is the error for a text that cannot be parsed.
func parsed[T any](parse func(string) (T, error), mistake string) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		token, err := ctx.Scan.PopValue("value")
		if err != nil {
			return err
		}
		text := fmt.Sprint(token.Value)
		value, err := parse(text)
		if err != nil {
			return fmt.Errorf("%q %s", text, mistake)
		}
		target.Set(reflect.ValueOf(value))
		return nil
	}))
}

// switchMapper parses boolean flags.
type switchMapper struct{}

// IsBool tells kong that the flag may have no value.
func (switchMapper) IsBool() bool { return true }

// Decode takes a flag without a value as true.
func (switchMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	value := true
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		switch text := strings.ToLower(fmt.Sprint(ctx.Scan.Pop().Value)); text {
		case "true", "1", "yes":
		case "false", "0", "no":
			value = false
		default:
			return fmt.Errorf("%q is neither true nor false", text)
		}
	}
	target.SetBool(value)
	return nil
}

// plainly maps kong's errors to an operator's words.
var plainly = []struct {
	kong  *regexp.Regexp
	plain string
}{
	{regexp.MustCompile(`^(--[\w-]+): expected .*value but got .*`), "$1: its value is missing"},
	{regexp.MustCompile(`^expected "<([^>]+)>.*`), "$1 is missing"},
	{regexp.MustCompile(`^<([^>]+)>: `), "$1: "},
	{regexp.MustCompile(`^bool value must be .* but got (".*")$`), "$1 is neither true nor false"},
}

// Plainly returns an error of kong in an operator's words.
func Plainly(err error) error {
	for _, p := range plainly {
		if text := err.Error(); p.kong.MatchString(text) {
			return errors.New(p.kong.ReplaceAllString(text, p.plain))
		}
	}
	return err
}

// otherNames returns the flags that other programs call name. The first one that the command has is
// suggested.
func otherNames(name string) []string {
	switch name {
	case "port", "addr", "address", "listen", "bind", "host":
		return []string{"http-addr", "admin-addr"}
	case "server":
		return []string{"admin-addr", "nats-url"}
	case "dir", "directory", "path", "store", "data":
		return []string{"data-dir"}
	case "url", "public-url", "domain":
		return []string{"base-url", "nats-url"}
	case "broker", "nats":
		return []string{"nats-url"}
	case "verbose", "debug", "quiet":
		return []string{"log-level"}
	case "json":
		return []string{"log-format"}
	case "output-file", "out", "file":
		return []string{"output"}
	}
	return nil
}

// Nearest returns the flag that name probably means, or "".
func Nearest(name string, flags []string) string {
	for _, other := range otherNames(name) {
		for _, flag := range flags {
			if flag == other {
				return flag
			}
		}
	}
	best, least := "", 2+len(name)/6 // maximum number of wrong letters
	for _, flag := range flags {
		if n := edits(name, flag); n < least {
			best, least = flag, n
		}
	}
	if best != "" {
		return best
	}
	for _, flag := range flags {
		for part := range strings.SplitSeq(flag, "-") {
			if part == name {
				return flag
			}
		}
	}
	return ""
}

// edits returns how many letters must be inserted, removed or replaced to turn a into b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
