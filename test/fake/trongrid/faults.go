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

// Fail applies a fault to the next calls whose path begins with a prefix; below zero
// times, to all until Heal. Of several faults for a call the first one with times left
// applies. The methods of JSON-RPC follow the path: "/jsonrpc eth_getLogs".
func (s *Server) Fail(prefix string, what Fault, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{prefix, what, times})
}

// Heal removes every fault.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// TooMany answers 429 with the documented body.
func TooMany(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusTooManyRequests, map[string]string{
		"Error": "The key exceeds the frequency limit(15), and the query server is suspended for 27 s"})
}

// Forbidden answers 403 with the documented body, which differs for the index.
func Forbidden(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		reply(w, http.StatusForbidden, map[string]any{"success": false, "statusCode": 403,
			"error": "The key exceeds the frequency limit(15), and the query server is suspended for 30s"})
		return
	}
	reply(w, http.StatusForbidden, map[string]string{
		"Error": "The key exceeds the frequency limit(15), and the query server is suspended for 30 s"})
}

// Unavailable answers 503 with a page of HTML.
func Unavailable(w http.ResponseWriter, r *http.Request, next http.Handler) {
	Text(http.StatusServiceUnavailable, "<html><head><title>503 Service Temporarily Unavailable</title></head></html>")(w, r, next)
}

// Empty400 answers as for a limit above 200.
func Empty400(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.WriteHeader(http.StatusBadRequest)
}

// NotFound answers as a node does for a call that it does not serve.
func NotFound(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusNotFound, map[string]string{"Error": "this API is unavailable due to config"})
}

// ErrorText answers as the node's own rate limiter does: an error with status 200.
func ErrorText(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusOK, map[string]string{"Error": "class java.lang.IllegalAccessException : lack of computing resources"})
}

// BareText answers 200 without JSON.
func BareText(w http.ResponseWriter, r *http.Request, next http.Handler) {
	Text(http.StatusOK, "this API is closed because this node is a lite fullnode")(w, r, next)
}

// HTML answers 200 with a page.
func HTML(w http.ResponseWriter, r *http.Request, next http.Handler) {
	Text(http.StatusOK, "<html><body>Checking your browser</body></html>")(w, r, next)
}

// NoSuccess answers 200 with success false and no rows.
func NoSuccess(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusOK, map[string]any{"success": false, "data": []any{}, "meta": map[string]any{}})
}

// NoData answers 200 with success and without data.
func NoData(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	reply(w, http.StatusOK, map[string]any{"success": true, "meta": map[string]any{}})
}

// Nothing answers as a node does for anything that it does not have yet: {} or [].
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

// Slow sends the beginning of an answer and waits until the caller leaves.
func Slow(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"`)
	http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// Cut announces the whole answer and sends half.
func Cut(w http.ResponseWriter, r *http.Request, next http.Handler) {
	whole := record(r, next).Bytes()
	w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
	w.Write(whole[:len(whole)/2])
}

// Redirect answers with a redirect to a place that would serve the call.
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

// Without renames a field of the answer.
func Without(field string) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Write(bytes.ReplaceAll(record(r, next).Bytes(), []byte(`"`+field+`"`), []byte(`"other"`)))
	}
}

// IgnoreFilters answers as if no filter had been given, as the index does for unknown
// parameters.
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
