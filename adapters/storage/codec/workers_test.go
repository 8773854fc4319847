package codec_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentproxy/adapters/storage/codec"
	"agentproxy/domain/traffic"
)

func TestWorkersAreReadBack(t *testing.T) {
	t.Parallel()
	for _, want := range [][]traffic.WorkerUse{
		nil,
		{{ID: 1}},
		{{ID: 3, Up: 5, Down: math.MaxInt64, Connections: 7}, {ID: 1 << 40, Up: 1, Down: 2, Connections: 3, Open: 64}},
	} {
		got, err := codec.DecodeWorkers(codec.AppendWorkers(nil, want))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v:\n%s", err, diff)
		}
	}
	for _, bad := range [][]byte{{0x80}, {1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}} {
		if got, err := codec.DecodeWorkers(bad); err == nil {
			t.Errorf("%v: %+v", bad, got)
		}
	}
}
