package proxyseller

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"agentproxy/domain"
)

// fault is an entry of errors[].
type fault struct {
	Message string
	Code    int
}

// Denied is the answer of v2 to every refusal of access: a wrong key, an address that is
// not allowed and too many requests are not distinguished.
var Denied = []fault{{"Error api key", 503}, {"IP not allowed 192.0.2.1", 503}, {"Request limit reached", 503}}

// The three messages of v1.
var (
	WrongKey   = []fault{{"Error api key", 503}}
	NotAllowed = []fault{{"IP not allowed", 503}}
	TooMany    = []fault{{"Request limit reached", 503}}
)

// Failure returns the body of a refusal.
func Failure(faults ...fault) string { return failure(faults...) }

// success returns the envelope of a success.
func success(data any) string {
	return envelope("success", data, []any{})
}

// failure returns the envelope of a refusal, which is sent with status 200.
func failure(faults ...fault) string {
	var list []any
	for _, f := range faults {
		list = append(list, map[string]any{"message": f.Message, "code": f.Code, "customData": nil})
	}
	return envelope("error", nil, list)
}

// warning returns an error without an entry in errors[]; the fault is in the data.
func warning(data any) string { return envelope("error", data, []any{}) }

func envelope(status string, data any, faults []any) string {
	text, err := json.Marshal(map[string]any{"status": status, "data": data, "errors": faults})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func write(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

// number returns an amount as a JSON number.
func number(m domain.Money) json.Number { return json.Number(m.String()) }

// day returns a date without a time.
func day(t time.Time) string { return t.Format("02.01.2006") }

// read decodes a request. It returns false for unknown fields.
func read(r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return d.Decode(into) == nil
}

// unknownError returns the answer to a value of the wrong form.
func unknownError() string { return failure(fault{"Unknown error", 35}) }
