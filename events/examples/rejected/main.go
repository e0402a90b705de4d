// Command rejected prints what the registry has rejected, also while it was away. Its argument is
// the number before the last line that you dealt with.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// reply is JetStream's: a message, or an error, whose code 404 says that there is none.
type reply struct {
	Error   *struct{ Code int }
	Message struct {
		Seq        uint64
		Hdrs, Data []byte
	}
}

func main() {
	url := nats.DefaultURL
	if u := os.Getenv("NATS_URL"); u != "" {
		url = u
	}
	nc, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		log.Fatal(err)
	}
	last := uint64(0)
	if len(os.Args) > 1 {
		if last, err = strconv.ParseUint(os.Args[1], 10, 64); err != nil {
			log.Fatal(err)
		}
	}
	for {
		r, err := next(nc, last+1)
		if err != nil {
			log.Print(err)
		}
		if err != nil || r.Error != nil {
			time.Sleep(10 * time.Second)
			continue
		}
		header, err := nats.DecodeHeadersMsg(r.Message.Hdrs)
		if err != nil {
			log.Print(err)
		}
		last = r.Message.Seq
		fmt.Println(last, header.Get("Registry-Subject"), header.Get("Registry-Reason"), string(r.Message.Data))
	}
}

// next asks for the first copy from a number on.
func next(nc *nats.Conn, from uint64) (r reply, err error) {
	m, err := nc.Request("$JS.API.STREAM.MSG.GET.REGISTRY_REJECTED", fmt.Appendf(nil, `{"seq":%d,"next_by_subj":"registry-rejected.>"}`, from), 5*time.Second)
	if err == nil {
		err = json.Unmarshal(m.Data, &r)
	}
	if err == nil && r.Error != nil && r.Error.Code != 404 {
		err = fmt.Errorf("code %d: %s", r.Error.Code, m.Data)
	}
	return r, err
}
