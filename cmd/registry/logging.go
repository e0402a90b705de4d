package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// logFlags shape the log, which goes to standard error.
type logFlags struct {
	LogFormat string     `enum:"auto,text,json" default:"auto" help:"Log format: text, json, or auto (text on a terminal, else json)." group:"Log"`
	LogLevel  slog.Level `default:"info" help:"Least level that is logged: debug, info, warn or error." group:"Log"`
}

func (f logFlags) logger(stderr io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: f.LogLevel}
	if f.LogFormat == "text" || f.LogFormat == "auto" && isTerminal(stderr) {
		return slog.New(slog.NewTextHandler(stderr, options))
	}
	return slog.New(slog.NewJSONHandler(stderr, options))
}

// isTerminal decides between output for people and output for programs.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
