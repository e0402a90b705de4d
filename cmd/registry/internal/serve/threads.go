package serve

import "runtime"

// spareThreads is how many threads more than processors run Go code. While all that Go has are busy,
// with an index, an import or garbage, it looks only every 10 ms whether a reader has asked; the
// system shares out the processors sooner. Of 500 cheap requests a second at 1 000 000 entries, on
// two processors, half and 99 in a hundred were answered within
//
//	                               without        with
//	indexes are made at a start    7, 46–86 ms    0.9, 8–10 ms
//	300 000 events are imported    8, 175 ms      1.4, 40 ms
//	garbage is given back          4, 19–28 ms    1, 7–12 ms
//
// while a server without a model beside it took 0.8 and 5 to 10 ms. It costs an import of 100 000
// entries 3 to 10 % of processor time, one of 1 000 000 nothing, and a fifth of the lists that can be
// answered while indexes are made.
const spareThreads = 2

// addThreads lets Go run on spareThreads more than there are processors. It does nothing where Go has
// chosen fewer, as under a container's limit of processors: more threads would only use that up
// sooner. Go takes a limit as whole processors, rounded up, and two at least, so one that comes to all
// of the machine's cannot be told from none.
func addThreads() {
	if n := runtime.GOMAXPROCS(0); n == runtime.NumCPU() {
		runtime.GOMAXPROCS(n + spareThreads)
	}
}
