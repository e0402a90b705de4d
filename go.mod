module example.org/registry

go 1.26.0

require (
	github.com/KimMachineGun/automemlimit v1.0.1 // memory limit of the container
	github.com/alecthomas/kong v1.17.0 // command line
	github.com/bits-and-blooms/bitset v1.24.2 // readmodel: sets of rows that a search matches
	github.com/blevesearch/bleve/v2 v2.6.0 // ranked search: segment files on the disk
	github.com/blevesearch/bleve_index_api v1.3.11 // indirect; ranked search: types of bleve's documents
	github.com/blevesearch/scorch_segment_api/v2 v2.4.7 // indirect; ranked search: types of bleve's segments
	github.com/blevesearch/vellum v1.2.0 // dictionary of word forms, and spellings
	github.com/chromedp/cdproto v0.159.0 // tests: with chromedp
	github.com/chromedp/chromedp v0.23.0 // tests: a real browser
	github.com/compose-spec/compose-go/v2 v2.16.2 // tests: validates the Compose file
	github.com/docker/go-units v0.5.0 // sizes in flags
	github.com/gin-contrib/cors v1.7.7 // CORS preflights
	github.com/gin-gonic/gin v1.12.0 // routes of the public API
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // strict JSON: no repeated member, no invalid UTF-8; until encoding/json/v2 is stable
	github.com/goccy/go-yaml v1.19.2 // openapi.yaml as a page; tests read YAML
	github.com/gofrs/flock v0.13.1 // one process a data directory
	github.com/klauspost/compress v1.20.3 // gzip of responses, zstd of snapshots
	github.com/maypok86/otter/v2 v2.4.0 // caches: responses, avatars, rate limit
	github.com/nats-io/jwt/v2 v2.8.2 // indirect; tests: accounts of the documented broker
	github.com/nats-io/nats-server/v2 v2.15.2 // embedded broker
	github.com/nats-io/nats.go v1.55.0 // JetStream client
	github.com/nats-io/nkeys v0.4.16 // keys of the broker's users
	github.com/prometheus/client_golang v1.25.0 // metrics
	github.com/rogpeppe/go-internal v1.16.0 // tests: scripts of commands (testscript)
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // tests: responses and events against their documents
	github.com/stretchr/testify v1.12.1 // tests: require
	github.com/tidwall/btree v1.8.2 // readmodel: orders that a copy shares
	github.com/yuin/goldmark v1.8.7 // Markdown of reasons and of operators' texts
	go.etcd.io/bbolt v1.5.0 // store of the read model
	go.uber.org/goleak v1.3.0 // tests: no goroutine is left
	golang.org/x/net v0.62.0 // parsing HTML of reasons; public suffixes
	golang.org/x/sync v0.24.0 // errgroup
	golang.org/x/sys v0.49.0 // mapped files, free space, file advice
	golang.org/x/term v0.47.0 // whether standard error is a terminal
	golang.org/x/text v0.43.0 // Polish collation, case folding, normal forms
	golang.org/x/time v0.16.0 // rate limits
	pgregory.net/rapid v1.3.0 // tests: properties
)

require (
	github.com/RoaringBitmap/roaring/v2 v2.14.5 // indirect
	github.com/antithesishq/antithesis-sdk-go v0.8.0-default-no-op // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/blevesearch/geo v0.2.5 // indirect
	github.com/blevesearch/go-faiss v1.1.0 // indirect
	github.com/blevesearch/go-porterstemmer v1.0.3 // indirect
	github.com/blevesearch/gtreap v0.1.1 // indirect
	github.com/blevesearch/mmap-go v1.2.0 // indirect
	github.com/blevesearch/segment v0.9.1 // indirect
	github.com/blevesearch/snowballstem v0.9.0 // indirect
	github.com/blevesearch/upsidedown_store_api v1.0.2 // indirect
	github.com/blevesearch/zapx/v11 v11.4.3 // indirect
	github.com/blevesearch/zapx/v12 v12.4.3 // indirect
	github.com/blevesearch/zapx/v13 v13.4.3 // indirect
	github.com/blevesearch/zapx/v14 v14.4.3 // indirect
	github.com/blevesearch/zapx/v15 v15.4.3 // indirect
	github.com/blevesearch/zapx/v16 v16.3.4 // indirect
	github.com/blevesearch/zapx/v17 v17.1.2 // indirect
	github.com/bytedance/gopkg v0.1.3 // indirect
	github.com/bytedance/sonic v1.15.0 // indirect
	github.com/bytedance/sonic/loader v0.5.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cloudwego/base64x v0.1.6 // indirect
	github.com/distribution/reference v0.5.0 // indirect
	github.com/docker/go-connections v0.4.0 // indirect
	github.com/gabriel-vasile/mimetype v1.4.12 // indirect
	github.com/gin-contrib/sse v1.1.0 // indirect
	github.com/go-playground/locales v0.14.1 // indirect
	github.com/go-playground/universal-translator v0.18.1 // indirect
	github.com/go-playground/validator/v10 v10.30.1 // indirect
	github.com/go-viper/mapstructure/v2 v2.4.0 // indirect
	github.com/goccy/go-json v0.10.5 // indirect
	github.com/golang/snappy v1.0.0 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	github.com/kylelemons/godebug v1.1.0 // indirect
	github.com/leodido/go-urn v1.4.0 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	github.com/mattn/go-shellwords v1.0.12 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.2 // indirect
	github.com/mschoch/smat v0.2.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/pbnjay/memory v0.0.0-20210728143218-7b4eea64cf58 // indirect
	github.com/pelletier/go-toml/v2 v2.2.4 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/quic-go/qpack v0.6.0 // indirect
	github.com/quic-go/quic-go v0.59.0 // indirect
	github.com/sirupsen/logrus v1.10.1 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	github.com/ugorji/go/codec v1.3.1 // indirect
	github.com/xhit/go-str2duration/v2 v2.1.0 // indirect
	go.mongodb.org/mongo-driver/v2 v2.5.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.4 // indirect
	golang.org/x/arch v0.23.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
