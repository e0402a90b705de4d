//go:build unix && !race && measure

package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
)

// TestLargestPaint measures the largest paint on a slow phone: a CPU that is four times
// slower, and slow 4G. Only a machine with nothing else to do can hold it to the time, so the test
// logs it, and fails far beyond.
func TestLargestPaint(t *testing.T) {
	tb := open(t, shared.site, look{width: 360, height: 740, mobile: true})
	call(tb, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4})
	tb.throttle(&network.Conditions{Latency: 150, DownloadThroughput: 1.6e6 / 8, UploadThroughput: 750e3 / 8})
	call(tb, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	for _, path := range []string{"/", search("99000000000000000000"), search("ran")} {
		tb.get(path)
		ms := evalAsync[float64](tb, `new Promise(done => new PerformanceObserver(list => done(list.getEntries().at(-1).startTime)).observe({type: "largest-contentful-paint", buffered: true}))`)
		t.Logf("%s: largest paint after %.0f ms", cut(path, 40), ms)
		if ms > 15_000 {
			t.Errorf("%s: largest paint after %.0f ms", path, ms)
		}
	}
}
