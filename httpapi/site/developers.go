package site

import (
	"embed"
	"fmt"
)

// BotsPath is the path of the page about bots. The paths of the bots' files begin with it.
const BotsPath = "/boty"

// Address stands for the service's own address in the files of [ReadBots].
const Address = "https://registry.example"

//go:embed bots
var botFiles embed.FS

// ReadBots returns the files of the page about bots, by name.
func ReadBots() (map[string]string, error) {
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

// APIPage is the page for developers.
type APIPage struct {
	Address string // of this service, to which the examples on the page send their requests
}

func (c APIPage) page() page {
	return page{template: "api", Title: "API dla programistów", Path: "/api", About: "Jak zapytać rejestr, czy konto albo serwer jest na liście.", Data: c.Address}
}

// BotsPage is the page about bots.
type BotsPage struct{}

func (BotsPage) page() page {
	return page{template: "bots", Title: "Bot na Discorda", Path: BotsPath, About: "Gotowy bot, który mówi moderatorom, kto z serwera jest na liście oszustów."}
}
