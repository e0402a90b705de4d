package main

import (
	"reflect"

	"github.com/alecthomas/kong"
)

// checkGiven refuses an argument or the value of a flag that is given and empty, as a shell makes it of a variable that is
// not set: what it was to name is not what a command without it is about. An empty variable of the environment is one
// that is not set.
func checkGiven(parsed *kong.Context) error {
	for _, p := range parsed.Path {
		switch {
		case p.Positional != nil && hollow(p.Positional.Target):
			return usagef("%s: must not be empty", p.Positional.Name)
		case p.Flag != nil && hollow(p.Flag.Target) && !mayBeNone(parsed, p.Flag):
			return usagef("--%s: must not be empty", p.Flag.Name)
		}
	}
	return nil
}

// hollow is true for an empty string, and for a list that is empty or has one in it.
func hollow(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return v.Len() == 0
	case reflect.Slice:
		for i := range v.Len() {
			if hollow(v.Index(i)) {
				return true
			}
		}
		return v.Len() == 0
	}
	return false
}

// mayBeNone is true for the flags of serve whose default is empty, and means something (API contract, program): the lists of
// brokers and proxies, and what is outside.
func mayBeNone(parsed *kong.Context, flag *kong.Flag) bool {
	switch {
	case parsed.Command() != "serve":
		return false
	case flag.Target.Kind() == reflect.Slice:
		return flag.Target.Len() == 0
	}
	return flag.Target.Type() == reflect.TypeFor[publicURL]() || flag.Name == "chat-token-file"
}
