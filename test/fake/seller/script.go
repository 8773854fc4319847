package seller

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Script has the answers of a seller by call, such as "GET /orders". Each answer is a
// status and a body, "422 {…}". Those of a call are sent in turn and the last one again
// and again; a call without any is answered with 404.
type Script map[string][]string

// Play serves a script until the test ends and returns its URL. The path of a call
// begins behind prefix.
func Play(t testing.TB, prefix string, script Script) string {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		call := r.Method + " " + strings.TrimPrefix(r.URL.Path, prefix)
		answers := script[call]
		if len(answers) == 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if len(answers) > 1 {
			script[call] = answers[1:]
		}
		var status int
		_, _ = fmt.Sscan(answers[0][:3], &status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answers[0][4:])
	}))
	t.Cleanup(server.Close)
	return server.URL
}
