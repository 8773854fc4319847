package main

import (
	"strings"
	"testing"
)

func TestMasked(t *testing.T) {
	const data = `{"snippet":"curl -x 'http://u:p%40ss%22word@h:1', password: \"p@ss\\\"word\"","api_key":"ak_1","amount":1.50,
		"proxies":[{"username":"u","password":"p@ss\"word","http_url":"http://u:p%40ss%22word@h:1","host":"h"}],
		"note":"p@ss\"word is in no field of this name"}`
	text, err := masked([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`curl -x 'http://u:***@h:1', password: \"***\"`, `"api_key": "***"`, `"password": "***"`,
		`"http_url": "http://u:***@h:1"`, `"amount": 1.50`, `"host": "h"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}
