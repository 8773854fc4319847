package trongrid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// Fault answers a call in place of the server, which is next.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

type fault struct {
	prefix string
	what   Fault
	times  int // below zero: for ever
}

// Fail does something to the next calls whose path begins with a prefix, so
// many; below zero, to all until Heal. Of several faults for a call the first
// one that is not used up acts.
func (s *Server) Fail(prefix string, what Fault, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{prefix, what, times})
}

// Heal ends every fault.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// TooMany is 429 with the documented body.
func TooMany(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusTooManyRequests, map[string]string{
		"Error": "The key exceeds the frequency limit(15), and the query server is suspended for 27 s"})
}

// Forbidden is 403 with the documented body, which the index writes in its own
// way.
func Forbidden(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		reply(w, http.StatusForbidden, map[string]any{"success": false, "statusCode": 403,
			"error": "The key exceeds the frequency limit(15), and the query server is suspended for 30s"})
		return
	}
	reply(w, http.StatusForbidden, map[string]string{
		"Error": "The key exceeds the frequency limit(15), and the query server is suspended for 30 s"})
}

// Unavailable is 503 with a page of HTML.
func Unavailable(w http.ResponseWriter, r *http.Request, next http.Handler) {
	Text(http.StatusServiceUnavailable, "<html><head><title>503 Service Temporarily Unavailable</title></head></html>")(w, r, next)
}

// Empty400 is what a limit above 200 gets.
func Empty400(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.WriteHeader(http.StatusBadRequest)
}

// NotFound is what a node says of a call that it does not serve.
func NotFound(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusNotFound, map[string]string{"Error": "this API is unavailable due to config"})
}

// ErrorText is the node's own limiter: an error that says 200.
func ErrorText(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusOK, map[string]string{"Error": "class java.lang.IllegalAccessException : lack of computing resources"})
}

// BareText is 200 and no JSON.
func BareText(w http.ResponseWriter, r *http.Request, next http.Handler) {
	Text(http.StatusOK, "this API is closed because this node is a lite fullnode")(w, r, next)
}

// HTML is 200 and a page.
func HTML(w http.ResponseWriter, r *http.Request, next http.Handler) {
	Text(http.StatusOK, "<html><body>Checking your browser</body></html>")(w, r, next)
}

// NoSuccess is 200 with success false and no rows.
func NoSuccess(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusOK, map[string]any{"success": false, "data": []any{}, "meta": map[string]any{}})
}

// NoData is 200 with success and without data.
func NoData(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusOK, map[string]any{"success": true, "meta": map[string]any{}})
}

// Nothing is what a node that does not have it yet says of anything: {} or [].
func Nothing(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	if strings.HasSuffix(r.URL.Path, "gettransactioninfobyblocknum") {
		reply(w, http.StatusOK, []any{})
		return
	}
	reply(w, http.StatusOK, struct{}{})
}

// Text answers with any body.
func Text(status int, body string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// Slow begins an answer and sends no more of it until the caller leaves.
func Slow(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"`)
	http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// Cut promises the whole answer and sends half.
func Cut(w http.ResponseWriter, r *http.Request, next http.Handler) {
	whole := record(r, next).Bytes()
	w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
	w.Write(whole[:len(whole)/2])
}

// Redirect sends the caller elsewhere, where it would be answered.
func Redirect(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	http.Redirect(w, r, "/elsewhere"+r.URL.RequestURI(), http.StatusTemporaryRedirect)
}

// RepeatFingerprint names the same next page on every page.
func RepeatFingerprint(w http.ResponseWriter, r *http.Request, next http.Handler) {
	editMeta(w, r, next, func(meta map[string]any) { meta["fingerprint"] = "again" })
}

// DropFingerprint names no next page although there is one.
func DropFingerprint(w http.ResponseWriter, r *http.Request, next http.Handler) {
	editMeta(w, r, next, func(meta map[string]any) {
		delete(meta, "fingerprint")
		delete(meta, "links")
	})
}

// IgnoreFilters answers as if no filter had been given, as the index does with
// parameters it does not know.
func IgnoreFilters(w http.ResponseWriter, r *http.Request, next http.Handler) {
	q := r.URL.Query()
	for _, name := range []string{"contract_address", "min_timestamp", "order_by"} {
		q.Del(name)
	}
	r.URL.RawQuery = q.Encode()
	next.ServeHTTP(w, r)
}

func editMeta(w http.ResponseWriter, r *http.Request, next http.Handler, edit func(map[string]any)) {
	var out map[string]any
	if err := json.Unmarshal(record(r, next).Bytes(), &out); err != nil {
		panic(err)
	}
	edit(out["meta"].(map[string]any))
	reply(w, http.StatusOK, out)
}

func record(r *http.Request, next http.Handler) *bytes.Buffer {
	w := httptest.NewRecorder()
	next.ServeHTTP(w, r)
	return w.Body
}
