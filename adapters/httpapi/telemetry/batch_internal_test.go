package telemetry

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/strictjson"
)

func benchBatch() []byte {
	var s strings.Builder
	s.WriteString(`{"events":[`)
	for i := range 100 {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"session_id":"sess_aaaabbbbccccddddeeee","event_type":"http_error","status_code":%d,"latency_ms":%d,"target_host":"shop.example"}`, 400+i, i*7)
	}
	s.WriteString("]}")
	return []byte(s.String())
}

// batchFields are the names of a batch, as the document has them.
var batchFields = &strictjson.Names{Fields: []strictjson.Name{{Name: "events", Within: &strictjson.Names{Fields: []strictjson.Name{
	{Name: "error_message"}, {Name: "event_type"}, {Name: "latency_ms"}, {Name: "occurred_at"}, {Name: "session_id"},
	{Name: "status_code"}, {Name: "target_host"}}}}}}

func BenchmarkDecodeBatch(b *testing.B) {
	body := benchBatch()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeBatch(body, batchFields); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzBatch proves that the decoder of batches refuses every body that other calls refuse.
func FuzzBatch(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` `, `[1]`, `{"events":null}`, `{"events":[{"session_id":"x","event_type":"success","status_code":1.0,"latency_ms":1e2}]}`,
		`{"events":[[],{},1,"x",{"event_type":"\u0062"}]}`, `{"events":[{"target_host":1,"occurred_at":"x","error_message":"\ud83d\ude00"}]}`,
		`{"events":[],"events":[]}`, `{"events":[{"session_id":"a","Session_ID":"b"}]}`, `{"events":[{"status_code":tru}]}`, `{"events":[]}x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		_, batchErr := decodeBatch(bytes.Clone(sent), batchFields)
		body := bytes.Clone(sent)
		if err := endpoint.CheckBody(body, batchFields); err != nil {
			if batchErr == nil {
				t.Fatalf("%q is taken as a batch: %v", sent, err)
			}
		}
	})
}
