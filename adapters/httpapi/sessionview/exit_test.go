package sessionview_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/domain/exit"
)

// written returns the facts as the API writes them.
func written(t *testing.T, m exit.Measured) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(strictjson.Append(nil, sessionview.ToExit(m)), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func TestWhatIsNotKnownIsNull(t *testing.T) {
	t.Parallel()
	m := exit.Measured{IP: netip.MustParseAddr("192.0.2.1"), At: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)}
	for name, got := range written(t, m) {
		switch {
		case strings.Contains("ip version measured_at", name):
			if got == nil {
				t.Errorf("%s is null", name)
			}
		case name == "network_type":
			if got != "unknown" {
				t.Errorf("%s is %v", name, got)
			}
		case got != nil:
			t.Errorf("%s is %v, and not known", name, got)
		}
	}
	m.Known = exit.Known{Listed: []string{}}
	if f := written(t, m); f["listed"] == nil || f["risk"] != 0.0 {
		t.Errorf("on no list: %v, risk %v", f["listed"], f["risk"])
	}
	m.Known, m.Declared = exit.Known{Country: "LT"}, "TH"
	if f := written(t, m); f["country"] != "LT" || f["declared_country"] != "TH" || f["agreed"] != false {
		t.Errorf("elsewhere than sold: %v", f)
	}
}
