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
	if answer.StatusCode != 200 && answer.StatusCode != 304 {
		return 0, nil, nil, fmt.Errorf("%s: %s %s", path, answer.Status, answer.Header.Get("Registry-Error"))
	}
	asOf, err := time.Parse(time.RFC3339, answer.Header.Get("Registry-As-Of"))
	if err != nil || time.Since(asOf).Abs() >= fresh {
		return 0, nil, nil, fmt.Errorf("%s: stare dane", path)
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
	if err != nil {
		return kept{}, err
	}
	if status == 200 {
		k.lines = string(body)
	}
	// Zakres o innej liczbie wierszy (po 30 bajtów) jest ucięty.
	if !whole.MatchString(k.lines) || !size.MatchString(strconv.FormatInt(int64(len(k.lines)/30), 2)) {
		return kept{}, fmt.Errorf("%s: nie cały zakres", prefix)
	}
	k.at, k.tag, k.sequence = time.Now(), header.Get("ETag"), header.Get("Registry-Sequence")
	ranges[prefix] = k
	return k, nil
}

// unknown mówi, dlaczego nie wiadomo: 503, stare dane, brak odpowiedzi.
func unknown(id string, why error) string {
	fmt.Fprintln(os.Stderr, id, why)
	return "nie wiadomo"
}

func check(id string) string {
	if !chatID.MatchString(id) {
		return unknown(id, errors.New("zgubiona wartość"))
	}
	sum := sha256.Sum256([]byte("registry-id-v1\n" + id))
	hash := hex.EncodeToString(sum[:])
	k, err := rangeOf(hash[:3])
	if err != nil {
		return unknown(id, err)
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
	_, _, body, err := get("/check?id="+id, "Registry-Min-Sequence", k.sequence)
	if err != nil {
		return unknown(id, err)
	}
	var found struct {
		Results []struct {
			Kind    string
			Entries []struct{ Verified bool }
		}
	}
	if err := json.Unmarshal(body, &found); err != nil || found.Results == nil {
		return unknown(id, fmt.Errorf("odpowiedź bez wyników: %v", err))
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
