// go run bot.go ID…
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"
)

const (
	api   = "https://registry.example/api"
	keep  = 30 * time.Second // tyle pamiętamy zakres
	fresh = 5 * time.Minute  // starsze dane to „nie wiadomo”
)

type kept struct {
	at                   time.Time
	lines, tag, sequence string
}

var (
	client = http.Client{Timeout: 5 * time.Second}
	chatID = regexp.MustCompile(`^[0-9]{15,20}$`)
	whole  = regexp.MustCompile(`^([0-9a-f]{26}:[0-9a-f]{2}\n)+$`)
	size   = regexp.MustCompile(`^11?0{4,}$`) // 32, 48, 64, 96… wierszy, dwójkowo
	ranges = map[string]kept{}                // lokalna lista: prefiks → zakres
)

func get(path, name, value string) (status int, header http.Header, body []byte, err error) {
	request, err := http.NewRequest("GET", api+path, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set(name, value)
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer answer.Body.Close()
	asOf, err := time.Parse(time.RFC3339, answer.Header.Get("Registry-As-Of"))
	if err != nil || time.Since(asOf).Abs() >= fresh {
		return 0, nil, nil, errors.New("stare dane")
	}
	body, err = io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	return answer.StatusCode, answer.Header, body, err
}

func rangeOf(prefix string) (kept, error) {
	k, known := ranges[prefix]
	if known && time.Since(k.at) < keep {
		return k, nil
	}
	status, header, body, err := get("/ranges/"+prefix, "If-None-Match", k.tag)
	switch {
	case err != nil:
		return kept{}, err
	case status == 200:
		k.lines = string(body)
	case status != 304 || !known:
		return kept{}, errors.New("błąd")
	}
	// Zakres o innej liczbie wierszy (po 30 bajtów) jest ucięty.
	if !whole.MatchString(k.lines) || !size.MatchString(strconv.FormatInt(int64(len(k.lines)/30), 2)) {
		return kept{}, errors.New("nie zakres")
	}
	k.at, k.tag, k.sequence = time.Now(), header.Get("ETag"), header.Get("Registry-Sequence")
	ranges[prefix] = k
	return k, nil
}

func check(id string) string {
	if !chatID.MatchString(id) {
		return "nie wiadomo" // zgubiona wartość
	}
	sum := sha256.Sum256([]byte("registry-id-v1\n" + id))
	hash := hex.EncodeToString(sum[:])
	k, err := rangeOf(hash[:3])
	if err != nil {
		return "nie wiadomo" // 503, stare dane, brak odpowiedzi
	}
	var bits uint64
	if line := regexp.MustCompile("(?m)^" + hash[3:29] + ":(..)$").FindStringSubmatch(k.lines); line != nil {
		bits, _ = strconv.ParseUint(line[1], 16, 8)
	}
	if bits&0x0f == 0 {
		return "brak wpisu" // nikt albo osoba zaufana
	}
	// Dopiero teraz pada ID, i to tylko kogoś, kto jest na liście. Odpowiedź
	// ma być co najmniej tak nowa jak zakres.
	status, _, body, err := get("/check?id="+id, "Registry-Min-Sequence", k.sequence)
	var found struct {
		Results []struct {
			Kind    string
			Entries []struct{ Verified bool }
		}
	}
	if err != nil || status != 200 || json.Unmarshal(body, &found) != nil || found.Results == nil {
		return "nie wiadomo"
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

func main() {
	for _, id := range os.Args[1:] {
		fmt.Println(id, check(id))
	}
}
