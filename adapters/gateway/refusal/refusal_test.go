package refusal

import (
	"errors"
	"strings"
	"testing"

	"agentproxy/adapters/gateway/http1"
)

// Every code has a text of its own; the texts are public API.
func TestCodesHaveTexts(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for c := range Codes {
		text := Code(c).String()
		if (c == 0) != (text == "") || seen[text] {
			t.Errorf("code %d has the text %q", c, text)
		}
		seen[text] = true
	}
}

func TestMalformedRequest(t *testing.T) {
	t.Parallel()
	var h http1.RequestHead
	err := http1.ReadRequest(http1.NewReader(strings.NewReader("GET / HTTP/1.1\r\n\r\n")), &h)
	bad, ok := errors.AsType[*http1.Error](err)
	if !ok {
		t.Fatal(err)
	}
	r := MalformedRequest(bad).Reply(false)
	if r.Status != 400 || r.Code != "BAD_REQUEST" || r.ProxyError != "http_request_error" || r.Message == "" || r.HowToFix == "" {
		t.Errorf("%+v", r)
	}
}
