package console

import (
	"embed"
	"io/fs"
	"net/http"
	"net/netip"
	"strings"

	"agentproxy/adapters/console/ui"
	"agentproxy/domain/account"
)

//go:embed all:pages
var pageFiles embed.FS

// New returns the console. It panics on a page that does not parse, which is a fault of the program.
func New(cfg Config, deps Deps) *Console {
	files, err := fs.Sub(pageFiles, "pages")
	if err != nil {
		panic("console: " + err.Error())
	}
	c := &Console{Deps: &deps, cfg: cfg, pages: ui.Parse(files, funcs)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Base+"/assets/{name}", ui.Assets)
	mux.HandleFunc("GET "+Base+"/sign-in", c.signInPage)
	mux.HandleFunc("POST "+Base+"/sign-in", c.signIn)
	mux.HandleFunc("POST "+Base+"/sign-out", c.signOut)
	mux.HandleFunc("GET "+Base+"/register", c.registerPage)
	mux.HandleFunc("POST "+Base+"/register", c.register)
	for pattern, p := range map[string]page{
		"GET /{$}":                           {c.overview, account.AccountRead},
		"GET /sessions":                      {c.sessions, account.SessionsRead},
		"GET /sessions/new":                  {c.buyPage, account.ProductsRead},
		"GET /sessions/quote":                {c.quotePage, account.SessionsWrite},
		"GET /sessions/end":                  {c.endAllPage, account.SessionsWrite},
		"POST /sessions/end":                 {c.endAll, account.SessionsWrite},
		"POST /sessions/proxies":             {c.proxyList, account.SessionsRead},
		"POST /sessions":                     {storing(c.buy), account.SessionsWrite},
		"GET /sessions/{session_id}":         {c.session, account.SessionsRead},
		"POST /sessions/{session_id}/rotate": {storing(c.rotate), account.SessionsWrite},
		"POST /sessions/{session_id}/workers/{worker}/rotate": {storing(c.rotateWorker), account.SessionsWrite},
		"GET /sessions/{session_id}/password":                 {c.passwordPage, account.SessionsWrite},
		"POST /sessions/{session_id}/password":                {c.replacePassword, account.SessionsWrite},
		"GET /sessions/{session_id}/renew":                    {c.renewPage, account.SessionsWrite},
		"POST /sessions/{session_id}/renew":                   {c.renew, account.SessionsWrite},
		"GET /sessions/{session_id}/settings":                 {c.settingsPage, account.SessionsWrite},
		"POST /sessions/{session_id}/labels":                  {c.setLabels, account.SessionsWrite},
		"POST /sessions/{session_id}/allowed-ips":             {c.setAllowedIPs, account.SessionsWrite},
		"POST /sessions/{session_id}/auto-top-up":             {c.setAutoTopUp, account.SessionsWrite},
		"POST /sessions/{session_id}/policy":                  {storing(c.setPolicy), account.SessionsWrite},
		"GET /sessions/{session_id}/traffic":                  {c.addPage, account.SessionsWrite},
		"POST /sessions/{session_id}/traffic":                 {c.addTraffic, account.SessionsWrite},
		"GET /sessions/{session_id}/end":                      {c.endPage, account.SessionsWrite},
		"POST /sessions/{session_id}/end":                     {c.endSession, account.SessionsWrite},
		"GET /money":                                          {c.money, account.BillingRead},
		"GET /money/ledger.csv":                               {c.ledgerCSV, account.BillingRead},
		"POST /money/budget":                                  {c.setBudget, account.BillingWrite},
		"POST /money/recharges":                               {c.createRecharge, account.BillingWrite},
		"GET /money/recharges/{order_id}":                     {c.recharge, account.BillingRead},
		"GET /money/recharges/{order_id}/qr.png":              {c.rechargeQR, account.BillingRead},
		"GET /access":                                         {c.access, account.AccountRead},
		"POST /access/account":                                {c.editAccount, account.AccountWrite},
		"GET /access/keys":                                    {c.keys, account.AccountRead},
		"GET /access/keys/{key_id}":                           {c.keyPage, account.AccountRead},
		"POST /access/keys/{key_id}":                          {c.changeKey, account.AccountWrite},
		"GET /access/keys/new":                                {c.newKeyPage, account.AccountWrite},
		"POST /access/keys":                                   {c.createKey, account.AccountWrite},
		"GET /access/keys/{key_id}/revoke":                    {c.revokePage, account.AccountWrite},
		"POST /access/keys/{key_id}/revoke":                   {c.revoke, account.AccountWrite},
		"POST /access/webhook":                                {c.setWebhook, account.AccountWrite},
		"GET /access/webhook/rotate-secret":                   {c.rotateHookSecretPage, account.AccountWrite},
		"POST /access/webhook/rotate-secret":                  {c.rotateHookSecret, account.AccountWrite},
		"GET /access/rotate-secret":                           {c.rotateSecretPage, account.AccountWrite},
		"POST /access/rotate-secret":                          {c.rotateSecret, account.AccountWrite},
		"POST /access/webhook/test":                           {c.testWebhook, account.AccountWrite},
		"POST /access/deliveries/{delivery_id}/redeliver":     {c.redeliver, account.AccountWrite},
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" "+Base+path, c.signedIn(p))
	}
	mux.Handle("GET "+Base, http.RedirectHandler(Base+"/", http.StatusSeeOther))
	mux.Handle(Base+"/", c.signedIn(page{c.nothing, ""}))
	c.serve = ui.Secure(mux)
	return c
}

// Serve answers a request of a client. It returns the id of the agent, empty without a sign-in, and why it
// answered 503, nil if it did not.
func (c *Console) Serve(w http.ResponseWriter, r *http.Request, client netip.Addr) (agentID string, outage error) {
	who := &identity{client: client}
	c.serve.ServeHTTP(w, r.WithContext(with(r.Context(), who)))
	return who.agentID, who.outage
}
