package httpapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/format"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/pages"
	"agentproxy/domain"
)

// pagesLinks are the headers of the first page and of the reference.
var pagesLinks = []string{`</llms.txt>; rel="llms-txt"`, `</.well-known/api-catalog>; rel="api-catalog"`}

const (
	markdownType = "text/markdown"
	catalogPath  = "/.well-known/api-catalog"
	securityPath = "/.well-known/security.txt"
)

// servePages serves what is read without a credential, outside the API's operations.
func (s *Server) servePages() {
	src := s.sources()
	src.Downloads = s.serveDownloads()
	set, err := pages.Render(src)
	if err != nil {
		panic("httpapi: " + err.Error()) // the templates are embedded
	}
	for _, p := range set.Files {
		more := http.Header{}
		if p.Path == catalogPath { // RFC 9727 section 2
			more.Set("Link", `<`+catalogPath+`>; rel="api-catalog"`)
		}
		s.serveText(p.Path, p.Kind, p.Text, more)
		s.api.AddPaths(p.Path)
	}
	s.serveHome(set)
	if src.Contact != "" {
		s.serveSecurity(src)
	}
}

// serveHome serves the first page: JSON, or what the client prefers.
func (s *Server) serveHome(set *pages.Set) {
	index := document("text/markdown; charset=utf-8", set.Index, nil)
	home := document(pages.HTML, set.Home, docsHeaders)
	serve := func(g *gin.Context) {
		h := g.Writer.Header()
		h.Add("Vary", "Accept")
		h["Link"] = slices.Clone(pagesLinks)
		switch format.Negotiate(g.GetHeader("Accept"), openapi.JSONType, markdownType, openapi.HTMLType) {
		case markdownType:
			index(g)
		case openapi.HTMLType:
			home(g)
		default:
			s.api.Answer(endpoint.CallOf(g), http.StatusOK, set.Welcome)
		}
	}
	for _, path := range []string{"/", endpoint.Prefix} {
		s.both(path, serve)
	}
	s.serveReference(set.API)
	s.api.AddPaths(endpoint.Prefix, "/docs", "/openapi.json")
}

// serveReference serves the reference page, in Markdown for those that ask for it.
func (s *Server) serveReference(markdown []byte) {
	page := document(pages.HTML, docsFile("docs/index.html"), docsHeaders)
	text := document(pages.Markdown, markdown, nil)
	s.both("/docs", func(g *gin.Context) {
		h := g.Writer.Header()
		h.Add("Vary", "Accept")
		h["Link"] = slices.Clone(pagesLinks)
		if format.Negotiate(g.GetHeader("Accept"), openapi.HTMLType, markdownType) == markdownType {
			text(g)
			return
		}
		page(g)
	})
}

// serveSecurity serves security.txt, whose date of expiry moves on with the days.
func (s *Server) serveSecurity(src pages.Sources) {
	s.both(securityPath, func(g *gin.Context) {
		document("text/plain; charset=utf-8", pages.SecurityText(src, s.Clock.Now()), nil)(g)
	})
	s.api.AddPaths(securityPath)
}

// sources returns what the pages show.
func (s *Server) sources() pages.Sources {
	src := pages.Sources{Base: s.base(), Shop: s.api.Shop, Version: s.cfg.Version, Contact: s.cfg.AbuseContact,
		Gateway: net.JoinHostPort(s.cfg.GatewayHost, strconv.Itoa(s.cfg.GatewayPort)), GatewayTLS: s.cfg.GatewayTLS,
		GatewayOnlyTLS: s.cfg.GatewayOnlyTLS,
		Target:         "https://example.com/",
		Errors:         documented(s.api.Refusals()), Gateways: s.cfg.GatewayErrors}
	if s.cfg.Dev {
		src.Target = src.Base + endpoint.Prefix + "/ip" // production refuses the service's own addresses
	}
	if s.Tools != nil {
		src.Tools = s.cfg.ToolTable
	}
	for _, o := range s.api.Operations() {
		src.Operations = append(src.Operations, pages.Operation{Method: o.Method, Path: endpoint.Prefix + o.Path,
			Summary: o.Summary, Scope: string(o.Scope)})
	}
	return src
}

// base returns where agents reach the service. No header of a request decides about it.
func (s *Server) base() string {
	return cmp.Or(strings.TrimSuffix(s.cfg.PublicURL, "/"), "http://"+s.cfg.Addr)
}

// documented writes refusals for the page of errors.
func documented(errs []*domain.Error) (list []pages.Refusal) {
	for _, e := range errs {
		list = append(list, pages.Refusal{Code: e.Code, Status: endpoint.StatusOf[e.Kind], Retryable: e.Retryable,
			Message: e.Message})
	}
	return list
}

// both serves GET and HEAD.
func (s *Server) both(path string, serve gin.HandlerFunc) {
	s.api.Engine.GET(path, serve)
	s.api.Engine.HEAD(path, serve)
}

// etag returns the weak tag of a text: it is the same compressed.
func etag(text []byte) string {
	sum := sha256.Sum256(text)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}
