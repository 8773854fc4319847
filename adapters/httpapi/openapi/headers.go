package openapi

import "github.com/danielgtaylor/huma/v2"

// header is a header of answers as the document has it.
type header struct {
	component string // its name there
	kind      string
	text      string
}

// headers are what Headers may be asked for.
var headers = map[string]header{
	"X-RateLimit-Limit": {"Limit", huma.TypeInteger,
		"Requests a minute, and the burst. Absent when unlimited, like the next two."},
	"X-RateLimit-Remaining": {"Left", huma.TypeInteger, "Requests that may be sent at once."},
	"X-RateLimit-Reset":     {"Reset", huma.TypeInteger, "When the whole limit is free again, in Unix seconds."},
	"RateLimit":             {"RateLimit", huma.TypeString, "The same in the form of the IETF draft."},
	"RateLimit-Policy":      {"Policy", huma.TypeString, "The same in the form of the IETF draft."},
	"Retry-After":           {"Retry-After", huma.TypeInteger, "Seconds to wait, at least 1."},
	"Location":              {"Location", huma.TypeString, "Where to poll the session."},
	"Idempotency-Replayed":  {"Replayed", huma.TypeString, "true when the Idempotency-Key was used before."},
}

// Headers returns the headers of an answer by their names.
func Headers(names ...string) map[string]*huma.Header {
	all := map[string]*huma.Header{}
	for _, name := range names {
		h := headers[name]
		all[name] = &huma.Header{Description: h.text, Schema: &huma.Schema{Type: h.kind}}
	}
	return all
}
