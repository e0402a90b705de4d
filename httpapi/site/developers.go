package site

import (
	"embed"
	"fmt"
)

// BotsPath is the path of the page about bots, and of their files below it.
const BotsPath = "/boty"

// Address stands for the service's own address in the files of [Bots].
const Address = "https://registry.example"

//go:embed bots
var botFiles embed.FS

// Bots returns the files of the page about bots, by name.
func Bots() (map[string]string, error) {
	entries, err := botFiles.ReadDir("bots")
	if err != nil {
		return nil, fmt.Errorf("site: bots: %w", err)
	}

	files := map[string]string{}
	for _, e := range entries {
		text, err := botFiles.ReadFile("bots/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("site: bots: %w", err)
		}
		files[e.Name()] = string(text)
	}
	return files, nil
}

// API appends the page for developers. Its examples ask at address.
func (s *Site) API(dst []byte, address string) ([]byte, error) {
	return s.Append(dst, "api", Page{Title: "API dla programistów", Path: "/api", Data: address,
		About: "Jak zapytać rejestr, czy konto albo serwer jest na liście."})
}

// BotsPage appends the page about bots.
func (s *Site) BotsPage(dst []byte) ([]byte, error) {
	return s.Append(dst, "bots", Page{Title: "Bot na Discorda", Path: BotsPath,
		About: "Gotowy bot, który mówi moderatorom, kto z serwera jest na liście oszustów."})
}
