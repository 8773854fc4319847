package console

import (
	"embed"
	"io/fs"
	"net/http"

	"agentproxy/adapters/console/ui"
)

//go:embed all:pages
var embedded embed.FS

// New returns the console.
func New(d Deps) *Console {
	files, err := fs.Sub(embedded, "pages")
	if err != nil {
		panic("console: " + err.Error())
	}
	c := &Console{use: d, pages: ui.Parse(files, nil), sellers: &sellerCache{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", ui.Assets)
	for path, show := range map[string]func(*http.Request) (page, error){
		"/{$}": c.overview, "/agents": c.agents, "/agents/{id}": c.agent, "/agents/referrers": c.referrers,
		"/sessions": c.allSessions, "/sessions/{id}": c.session, "/money": c.money, "/recharges": c.recharges,
		"/recharges/{id}": c.recharge, "/recharges/addresses": c.addresses, "/sellers": c.sellersPage,
		"/sellers/{name}": c.seller, "/jobs": c.jobs, "/exits": c.exits,
		"/exits/quality": c.exitQuality, "/policy": c.policy, "/audit": c.audit,
	} {
		mux.HandleFunc("GET "+path, c.serve(show))
	}
	mux.HandleFunc("GET /agents.csv", c.agentFile)
	mux.HandleFunc("GET /recharges/addresses.csv", c.addressFile)
	mux.HandleFunc("GET /do/{action}", c.acting(c.actionForm))
	mux.HandleFunc("POST /do/{action}", c.acting(c.act))
	mux.HandleFunc("GET /", c.missing)
	c.handler = ui.Secure(mux)
	return c
}
