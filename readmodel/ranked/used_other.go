//go:build !unix

package ranked

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
