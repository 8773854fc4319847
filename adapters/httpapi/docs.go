package httpapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"maps"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// docsFiles are the reference page: it reads the document and shows it.
//
//go:embed docs/index.html docs/docs.css docs/docs.js
var docsFiles embed.FS

// docsPolicy lets the page load nothing that is not served here.
const docsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serveDocs serves the reference page outside the API's prefix.
func (s *Server) serveDocs() {
	for path, file := range map[string]struct{ name, kind string }{
		"/docs":          {"docs/index.html", "text/html; charset=utf-8"},
		"/docs/docs.css": {"docs/docs.css", "text/css; charset=utf-8"},
		"/docs/docs.js":  {"docs/docs.js", "text/javascript; charset=utf-8"},
	} {
		text, err := docsFiles.ReadFile(file.name)
		if err != nil {
			panic("httpapi: " + err.Error()) // it is embedded
		}
		s.serveText(path, file.kind, text, http.Header{
			"Content-Security-Policy": {docsPolicy},
			"X-Frame-Options":         {"DENY"},
			"Referrer-Policy":         {"no-referrer"},
		})
	}
}

// serveText serves a document that stays the same while the program runs. A client that has it
// is answered 304.
func (s *Server) serveText(path, kind string, text []byte, more http.Header) {
	sum := sha256.Sum256(text)
	tag := `W/"` + hex.EncodeToString(sum[:12]) + `"` // weak: it is the same compressed
	serve := func(c *gin.Context) {
		h := c.Writer.Header()
		maps.Copy(h, more)
		h.Set("Content-Type", kind)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(text))
	}
	s.engine.GET(path, serve)
	s.engine.HEAD(path, serve)
}
