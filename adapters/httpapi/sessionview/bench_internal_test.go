package sessionview

import (
	"testing"

	"agentproxy/adapters/httpapi/strictjson"
)

func BenchmarkEncodeSession(b *testing.B) {
	var buf []byte
	var v any = ExampleDynamic
	b.ReportAllocs()
	for b.Loop() {
		buf = strictjson.Append(buf[:0], v)
	}
}
