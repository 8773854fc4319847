package proxyseller

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"agentproxy/domain"
)

// fault is one entry of errors[].
type fault struct {
	Message string
	Code    int
}

// Denied is how every refusal of access is answered in v2: a wrong key, an
// address that is not allowed and too many requests look the same.
var Denied = []fault{{"Error api key", 503}, {"IP not allowed 192.0.2.1", 503}, {"Request limit reached", 503}}

// The three texts alone, as v1 answers them.
var (
	WrongKey   = []fault{{"Error api key", 503}}
	NotAllowed = []fault{{"IP not allowed", 503}}
	TooMany    = []fault{{"Request limit reached", 503}}
)

// Failure is the body of a refusal.
func Failure(faults ...fault) string { return failure(faults...) }

// success is the envelope of a call that worked.
func success(data any) string {
	return envelope("success", data, []any{})
}

// failure is the envelope of one that did not. The status is 200 all the same.
func failure(faults ...fault) string {
	var list []any
	for _, f := range faults {
		list = append(list, map[string]any{"message": f.Message, "code": f.Code, "customData": nil})
	}
	return envelope("error", nil, list)
}

// warning is an error without an entry in errors[]: what is wrong is in the data.
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

// number is an amount as a JSON number.
func number(m domain.Money) json.Number { return json.Number(m.String()) }

// day is a date without a time.
func day(t time.Time) string { return t.Format("02.01.2006") }

// read decodes a request; what it does not know is refused as unknown.
func read(r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return d.Decode(into) == nil
}

// unknownError is what the seller says when it stumbles over a value.
func unknownError() string { return failure(fault{"Unknown error", 35}) }
