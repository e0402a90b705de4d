package ranked

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	zap "github.com/blevesearch/zapx/v17"
)

// segments makes and merges the segments of an index as bleve's own plugin does, but documents in order, and merges only as
// fast as their store lets them. The store is in the configuration that bleve hands on.
type segments struct{ zap.ZapPlugin }

// The name and the version by which an index asks for the plugin. Its files are bleve's.
const (
	segmentType    = "registry"
	segmentVersion = 1
	storeKey       = "registry"
)

// Type is part of scorch.SegmentPlugin, as the other methods are.
func (*segments) Type() string { return segmentType }

// Version is the plugin's.
func (*segments) Version() uint32 { return segmentVersion }

// NewUsing makes a segment of a batch, which comes in no order.
func (s *segments) NewUsing(batch []index.Document, config map[string]any) (segment.Segment, uint64, error) {
	slices.SortFunc(batch, func(a, b index.Document) int { return cmp.Compare(a.ID(), b.ID()) })
	return s.ZapPlugin.NewUsing(batch, config)
}

// MergeUsing merges segments.
func (s *segments) MergeUsing(of []segment.Segment, drops []*roaring.Bitmap, path string, closed chan struct{},
	reporter segment.StatsReporter, config map[string]any) ([][]uint64, uint64, error) {
	if store, ok := config[storeKey].(*store); ok {
		m := store.meter()
		m.begin()
		reporter = &merge{reporter, m, 0}
	}
	return s.ZapPlugin.MergeUsing(of, drops, path, closed, reporter, config)
}

// merge is a merge under way. It is told of every byte that is written.
type merge struct {
	segment.StatsReporter
	meter   meter
	written uint64 // since the last tick
}

// tickEvery is how many bytes of a merge are a fraction of a millisecond.
const tickEvery = 16 << 10

// ReportBytesWritten pays for what has been written.
func (m *merge) ReportBytesWritten(n uint64) {
	m.StatsReporter.ReportBytesWritten(n)
	if m.written += n; m.written >= tickEvery {
		m.written = 0
		m.meter.tick()
	}
}

// registerSegments makes the plugin known to bleve. The caller holds registering.
func registerSegments() {
	if !slices.Contains(scorch.SupportedSegmentTypes(), segmentType) {
		scorch.RegisterSegmentPlugin(&segments{}, false)
	}
}
