package codec_test

import (
	"math"
	"slices"
	"testing"

	"agentproxy/adapters/storage/codec"
	"agentproxy/domain/traffic"
)

func TestReportsAreReadBack(t *testing.T) {
	t.Parallel()
	list := []traffic.Report{
		{AgentID: "agt_1", SessionID: "sess_1", Lease: "a", Up: 1, Down: math.MaxInt64, Connections: 3},
		{AgentID: "agt_2", SessionID: "sess_22", Lease: ""},
	}
	ids, counts := codec.AppendReportIDs(nil, list), codec.AppendReportCounts(nil, list)
	got, err := codec.DecodeReports(ids, counts)
	if err != nil || !slices.Equal(got, list) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := codec.DecodeReports(nil, nil); len(got) > 0 || err != nil {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	for n := range ids {
		if _, err := codec.DecodeReports(ids[:n], counts); err == nil {
			t.Errorf("%d bytes of ids are taken", n)
		}
	}
	for n := range counts {
		if _, err := codec.DecodeReports(ids, counts[:n]); err == nil {
			t.Errorf("%d bytes of counters are taken", n)
		}
	}
	over := []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1}
	if _, err := codec.DecodeReports([]byte{0, 0, 0}, append(over, 0, 0)); err == nil {
		t.Error("a negative counter is taken")
	}
}
