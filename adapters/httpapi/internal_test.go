package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func benchBatch() []byte {
	var s strings.Builder
	s.WriteString(`{"events":[`)
	for i := range 100 {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"session_id":"sess_aaaabbbbccccddddeeee","event_type":"http_error","status_code":%d,"latency_ms":%d,"target_host":"shop.example"}`,
			400+i, i*7)
	}
	s.WriteString("]}")
	return []byte(s.String())
}

func BenchmarkJudge(b *testing.B) {
	body := benchBatch()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := judge(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeBatch(b *testing.B) {
	body := benchBatch()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeBatch(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeSession(b *testing.B) {
	buf := &buffer{}
	var v any = exampleDynamic
	b.ReportAllocs()
	for b.Loop() {
		buf.b = buf.b[:0]
		if err := appendValue(buf, v); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEncoder holds the encoder against encoding/json, for every reply that the
// document shows.
func TestEncoder(t *testing.T) {
	s := newBare()
	for _, o := range s.ops {
		for _, r := range o.OK {
			for _, v := range []any{r.Data, r.Or} {
				if _, is := v.(picture); is {
					continue // nothing encodes it
				}
				buf := &buffer{}
				if err := appendValue(buf, v); err != nil {
					t.Fatal(err)
				}
				want, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(buf.b, want) {
					t.Errorf("%s:\n%s, encoding/json writes\n%s", o.ID, buf.b, want)
				}
			}
		}
	}
}

// newBare is a server without use cases: its declarations.
func newBare() *Server { return New(Config{}, Deps{Log: slog.New(slog.DiscardHandler)}) }
