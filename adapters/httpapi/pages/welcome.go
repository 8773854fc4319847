package pages

import (
	"encoding/json"
	"net"
	"strconv"
	"time"
)

// Welcome is the first page for programs.
type Welcome struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Version string `json:"version"`
	API     string `json:"api"`
	Gateway string `json:"gateway"`
	Steps   []Step `json:"steps"`
	Links   []Link `json:"links"`
}

// Step is a call of the way to the first request.
type Step struct {
	Do   string `json:"do"`
	Call string `json:"call"`
	Body string `json:"body"`
}

// Link is an address with what is there.
type Link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

const about = "Sells proxy sessions to software agents: addresses that web traffic leaves from. " +
	"An account is one call and starts with trial credit."

func welcome(src Sources) Welcome {
	api := src.Base + "/v1"
	w := Welcome{Name: "agentproxy", About: about, Version: src.Version, API: api, Gateway: src.Gateway,
		Steps: []Step{
			{"register; the answer has the api_key of the next calls, sent as X-API-Key",
				"POST " + api + "/account/register", `{"name":"my agent"}`},
			{"buy a session of a product that GET " + api + "/public/products lists",
				"POST " + api + "/sessions", `{"type":"dynamic","config":{"product_no":"…","traffic_gb":1,"max_cost":5}}`},
			{"send requests through proxy.full_url of the answer; end the session when you are done",
				"POST " + api + "/sessions/{session_id}/terminate", ""},
		},
		Links: []Link{{"llms-txt", src.Base + "/llms.txt"}, {"openapi", src.Base + "/openapi.json"},
			{"reference", src.Base + "/docs"}, {"quickstart", src.Base + "/docs/quickstart.md"},
			{"errors", src.Base + "/docs/errors.md"}, {"skill", src.Base + "/skill.md"},
			{"api-catalog", src.Base + "/.well-known/api-catalog"}},
	}
	if len(src.Tools) > 0 {
		w.Links = append(w.Links, Link{"mcp", src.Base + "/mcp"})
	}
	return w
}

// splitGateway returns the host and the port of the gateway.
func splitGateway(gateway string) (string, int) {
	host, port, _ := net.SplitHostPort(gateway)
	n, _ := strconv.Atoi(port)
	return host, n
}

// CatalogType is the media type of the catalogue of RFC 9727.
const CatalogType = `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`

// target is a link of a linkset (RFC 9264).
type target struct {
	Href string `json:"href"`
	Type string `json:"type,omitempty"`
}

// catalog returns the catalogue of the service's APIs.
func catalog(src Sources) []byte {
	type links struct {
		Anchor string   `json:"anchor"`
		Desc   []target `json:"service-desc,omitempty"`
		Doc    []target `json:"service-doc,omitempty"`
		Status []target `json:"status,omitempty"`
		Item   []target `json:"item,omitempty"`
	}
	api, mcp := src.Base+"/v1", src.Base+"/mcp"
	list := []links{
		{Anchor: src.Base + "/.well-known/api-catalog", Item: []target{{Href: api}}},
		{Anchor: api,
			Desc: []target{{src.Base + "/openapi.json", "application/json"}},
			Doc: []target{{src.Base + "/docs", "text/html"}, {src.Base + "/docs/api.md", "text/markdown"},
				{src.Base + "/llms.txt", "text/markdown"}},
			Status: []target{{api + "/health", "application/json"}}},
	}
	if len(src.Tools) > 0 {
		list[0].Item = append(list[0].Item, target{Href: mcp})
		list = append(list, links{Anchor: mcp, Doc: []target{{src.Base + "/docs/mcp.md", "text/markdown"}}})
	}
	text, err := json.MarshalIndent(map[string]any{"linkset": list}, "", "  ")
	if err != nil {
		panic("pages: " + err.Error()) // it is made of texts
	}
	return append(text, '\n')
}

// securityLifetime is how long security.txt is valid; RFC 9116 recommends less than a year.
const securityLifetime = 180 * 24 * time.Hour

// SecurityText returns the text of RFC 9116 for a day.
func SecurityText(src Sources, now time.Time) []byte {
	expires := now.UTC().Truncate(24 * time.Hour).Add(securityLifetime).Format(time.RFC3339)
	return []byte("Contact: " + src.Contact + "\nExpires: " + expires + "\nPreferred-Languages: en\nCanonical: " +
		src.Base + "/.well-known/security.txt\n")
}
