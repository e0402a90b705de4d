package ranked

import (
	"github.com/blevesearch/bleve/v2/index/scorch"
	_ "github.com/blevesearch/bleve_index_api"
	_ "github.com/blevesearch/scorch_segment_api/v2"
)

var _ = scorch.NewScorch
