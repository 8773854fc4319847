package httpapi

import (
	"embed"
	"net/http"

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
		s.engine.GET(path, func(c *gin.Context) {
			h := c.Writer.Header()
			h.Set("Content-Security-Policy", docsPolicy)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("X-Frame-Options", "DENY")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Cache-Control", "no-cache")
			c.Data(http.StatusOK, file.kind, text)
		})
	}
}
