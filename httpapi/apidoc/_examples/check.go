package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"
)

const api = "https://registry.example/api/check?id="

var client = http.Client{Timeout: 5 * time.Second}

var chatID = regexp.MustCompile(`^[0-9]{15,20}$`)

func check(id string) string {
	if !chatID.MatchString(id) {
		return "nie wiadomo" // zgubiona wartość
	}
	answer, err := client.Get(api + id)
	if err != nil {
		return "nie wiadomo" // brak odpowiedzi
	}
	defer answer.Body.Close()
	var found struct {
		Results []struct {
			Kind    string
			Entries []struct{ Verified bool }
		}
	}
	err = json.NewDecoder(answer.Body).Decode(&found)
	if answer.StatusCode != 200 || err != nil || found.Results == nil {
		return "nie wiadomo" // 503 i każdy inny błąd
	}
	verdict := "brak wpisu"
	for _, group := range found.Results {
		if group.Kind != "scammers" && group.Kind != "servers" {
			continue
		}
		for _, entry := range group.Entries {
			if entry.Verified {
				return "ostrzeż"
			}
			verdict = "powiadom moderatora"
		}
	}
	return verdict
}

func main() { fmt.Println(check("99016474520097277832")) }
