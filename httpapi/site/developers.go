package site

import "embed"

// BotsPath is the path of the page about bots. The paths of the bots' files begin with it.
const BotsPath = "/boty"

// Address stands for the service's own address in the files of [BotFiles].
const Address = "https://registry.example"

//go:embed bots
var botFiles embed.FS

// BotFiles returns the files of the page about bots, by name.
func BotFiles() map[string][]byte { return readFiles(botFiles, "bots/*") }

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
