package demo

import (
	_ "embed"

	"example.org/registry/httpapi/site"
)

// About is a sample of an operator's page about the registry, as for --about-file.
//
//go:embed about.md
var About string

// Questions are examples for the first page, one for each verdict.
var Questions = []site.Question{
	{Text: "oszust (ID)", Asked: "99000071323770252450"},
	{Text: "lista ryzyka (ID)", Asked: "99000019024962878831"},
	{Text: "osoba zaufana (ID)", Asked: "99018129845052181029"},
	{Text: "nazwa osoby zaufanej", Asked: "Ostatni Joystick"},
	{Text: "nazwa podobna do oszusta", Asked: "Pł0mienny_Młynarz64"},
	{Text: "numer telefonu", Asked: "600 700 800"},
	{Text: "ID, którego nie ma", Asked: "712345678901234567"},
}
