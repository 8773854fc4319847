package main

import (
	"bytes"
	"strings"
	"testing"
)

const want = `tests that failed at least once: 7
  example.test/broken
    alone 1 of 1, busy 0 of 1, first: does not build: broken/a_test.go:3:28: undefined: missing
  example.test/exits
    alone 1 of 1, busy 0 of 1, first: no server
  example.test/hangs
    alone 1 of 1, busy 0 of 1, -shuffle=1795554877762400520, first: panic: test timed out after 1s; running: TestHangs/sub
  example.test/panics
    alone 1 of 1, busy 0 of 1, -shuffle=1795554878660998250, first: panic: assignment to entry in nil map [recovered, repanicked]; running: TestWaits
  example.test/panics TestPanics
    alone 1 of 1, busy 0 of 1, -shuffle=1795554878660998250, first: panic: assignment to entry in nil map [recovered, repanicked]
  example.test/red TestFails
    alone 1 of 1, busy 1 of 1, -shuffle=1795554879796334156, first: a_test.go:5: at once
  example.test/red TestSub/one
    alone 1 of 1, busy 0 of 1, -shuffle=1795554879796334156, first: a_test.go:4: context
slowest tests, seconds of the shortest run:
     1.50  example.test/red TestSub
     0.01  example.test/red TestPasses
     0.00  example.test/panics TestGo
`

func TestReport(t *testing.T) {
	t.Run("names what failed, did not build, hung, panicked or exited", func(t *testing.T) {
		var out bytes.Buffer
		err := printReport(&out, []string{"testdata/alone-1.json", "testdata/busy-1.json"})
		if err != nil || out.String() != want {
			t.Errorf("%v, got\n%s", err, out.String())
		}
	})

	t.Run("refuses what is no stream of events", func(t *testing.T) {
		err := newReport().read("alone", strings.NewReader("{\"Action\":\"start\"}\nno event\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "event 2: ") {
			t.Errorf("got %v", err)
		}
	})
}
