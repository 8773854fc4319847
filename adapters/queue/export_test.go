package queue

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs many tests at the same time: they wait for River's intervals and compute little.
func TestMain(m *testing.M) {
	testOnly = true
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
