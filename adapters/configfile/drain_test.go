package configfile_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/configfile"
)

func TestDrainDelay(t *testing.T) {
	for _, c := range []struct {
		dev, set string
		want     time.Duration
		fault    string
	}{
		{"true", "", 0, ""},
		{"false", "", 5 * time.Second, ""},
		{"true", "7", 7 * time.Second, ""},
		{"false", "0", 0, ""},
		{"false", "300", 5 * time.Minute, ""},
		{"false", "301", 0, "at most 300"},
		{"false", "-1", 0, "0 or more"},
	} {
		clean(t)
		t.Setenv("AGENTPROXY_DEV", c.dev)
		if c.set != "" {
			t.Setenv("AGENTPROXY_DRAIN_DELAY_SECONDS", c.set)
		}
		s, err := configfile.Load(rules())
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), "AGENTPROXY_DRAIN_DELAY_SECONDS: must be "+c.fault) {
				t.Errorf("%q: %v", c.set, err)
			}
		} else if err != nil || s.DrainDelay != c.want {
			t.Errorf("%q in mode %s: %v, %v", c.set, c.dev, s.DrainDelay, err)
		}
	}
}
