package httpapi

import (
	"bytes"
	"embed"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
)

// docsFiles are the reference page: it reads the document and shows it.
//
//go:embed docs/index.html docs/docs.css docs/docs.js
var docsFiles embed.FS

// docsPolicy lets the page load nothing that is not served here.
const docsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// docsHeaders are the headers of pages for browsers.
var docsHeaders = http.Header{
	"Content-Security-Policy": {docsPolicy},
	"X-Frame-Options":         {"DENY"},
	"Referrer-Policy":         {"no-referrer"},
}

// docsFile returns an embedded file.
func docsFile(name string) []byte {
	text, err := docsFiles.ReadFile(name)
	if err != nil {
		panic("httpapi: " + err.Error()) // it is embedded
	}
	return text
}

// serveDocs serves what the reference page loads.
func (s *Server) serveDocs() {
	for name, kind := range map[string]string{
		"docs.css": "text/css; charset=utf-8",
		"docs.js":  "text/javascript; charset=utf-8",
	} {
		s.serveText("/docs/"+name, kind, docsFile("docs/"+name), docsHeaders)
	}
}

// serveDocument serves what write returns.
func (s *Server) serveDocument(write func() []byte) {
	answer := sync.OnceValue(func() gin.HandlerFunc { return document(openapi.JSONType, write(), nil) })
	for _, path := range []string{"/openapi.json", endpoint.Prefix + "/openapi.json"} {
		s.both(path, func(c *gin.Context) {
			if err := binding.CheckQuery(c.Request.URL.RawQuery); err != nil {
				s.api.Refuse(endpoint.CallOf(c), err)
				return
			}
			answer()(c)
		})
	}
}

// serveText serves a document that stays the same while the program runs.
func (s *Server) serveText(path, kind string, text []byte, more http.Header) {
	s.both(path, document(kind, text, more))
}

// document returns a handler that answers a text. A client that has it is answered 304.
func document(kind string, text []byte, more http.Header) gin.HandlerFunc {
	tag := etag(text)
	return func(c *gin.Context) {
		h := c.Writer.Header()
		maps.Copy(h, more)
		h.Set("Content-Type", kind)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		h.Set("Access-Control-Allow-Origin", "*") // it is the same for everyone, and viewers of documents run in browsers
		http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(text))
	}
}
