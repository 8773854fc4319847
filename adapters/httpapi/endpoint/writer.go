package endpoint

import (
	"net/http"
)

// Writer returns the writer of an answer that is no envelope.
func (c *Call) Writer() http.ResponseWriter { return waiter{c.gin.Writer, c} }

// waiter is a writer that notes when the answer begins: the client may read it slowly.
type waiter struct {
	http.ResponseWriter
	call *Call
}

// WriteHeader begins the answer.
func (w waiter) WriteHeader(status int) {
	if w.call.conn.ShouldClose() {
		w.Header()["Connection"] = closing
	}
	w.call.conn.Wait()
	w.ResponseWriter.WriteHeader(status)
}
