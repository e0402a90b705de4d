package eventstest

import "testing"

// TestBrokerLeavesNoGoroutine: when a test with a broker has ended, so have the broker's
// goroutines.
func TestBrokerLeavesNoGoroutine(t *testing.T) {
	for range 10 {
		t.Run("", func(t *testing.T) {
			js := Connect(t, Broker(t))
			if serverStacks() == "" {
				t.Error("a running broker has no goroutine")
			}
			Stream(t, js)
			Publish(t, js, Events(20, 1)...)
		})
		if stacks := serverStacks(); stacks != "" {
			t.Errorf("still running:\n%s", stacks)
		}
	}
}
