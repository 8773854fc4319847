package httpapi

import (
	"bytes"
	"context"
	"html/template"
	"net/http"

	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

type statementInput struct {
	Paging
	Month string `path:"month" doc:"YYYY-MM, a UTC month."`
}

type statementReply struct {
	Month          string               `json:"month"`
	From           stamp                `json:"from"`
	To             stamp                `json:"to" doc:"Exclusive."`
	Currency       string               `json:"currency" enum:"USD"`
	OpeningBalance money                `json:"opening_balance"`
	ClosingBalance money                `json:"closing_balance" doc:"opening_balance and all of by_type; of the current month so far."`
	ByType         statementTypesReply  `json:"by_type" doc:"The signed changes of the balance."`
	Items          []statementItemReply `json:"items" doc:"By session, the newest first."`
	Pagination     paginationReply      `json:"pagination"`
}

type statementTypesReply struct {
	TrialGrant  money `json:"trial_grant"`
	Recharge    money `json:"recharge"`
	Hold        money `json:"hold"`
	Charge      money `json:"charge"`
	Release     money `json:"release"`
	Refund      money `json:"refund"`
	TrialExpiry money `json:"trial_expiry"`
	Adjustment  money `json:"adjustment"`
}

type statementItemReply struct {
	SessionID string `json:"session_id"`
	Type      string `json:"type" enum:"dynamic,static"`
	ProductNo string `json:"product_no"`
	Held      money  `json:"held" doc:"Of this month, as the rest."`
	Charged   money  `json:"charged"`
	Released  money  `json:"released"`
	Refunded  money  `json:"refunded"`
	Amount    money  `json:"amount" doc:"The signed change of the balance."`
}

func (s *Server) declareStatements() {
	op(s, operation{
		ID:      "get-statement",
		Method:  http.MethodGet,
		Path:    "/billing/statements/{month}",
		Tag:     "billing",
		Summary: "What a month did to the balance",
		Doc:     "With Accept: text/html a page to print. " + csvDoc,
		Scope:   account.BillingRead,
		CSV:     true,
		OK:      []reply{{Status: ok, Doc: "The statement.", Data: exampleStatement}},
	}, func(ctx context.Context, in *statementInput) (int, statementReply, error) {
		page, err := in.page(ctx)
		if err != nil {
			return 0, statementReply{}, err
		}
		st, err := s.Wallet.Statement(ctx, caller(ctx), in.Month, page)
		return ok, toStatement(st), err
	})
}

func toStatement(s ledger.Statement) statementReply {
	of := func(t billing.Type) money { return money(s.ByType[t]) }
	items, pagination := toItems(s.Items, func(i ports.StatementItem) statementItemReply {
		return statementItemReply{i.SessionID, string(i.Type), i.ProductNo, money(i.Held), money(i.Charged), money(i.Released),
			money(i.Refunded), money(i.Amount)}
	})
	return statementReply{Month: s.From.Format("2006-01"), From: stamp(s.From), To: stamp(s.To), Currency: domain.Currency,
		OpeningBalance: money(s.Opening), ClosingBalance: money(s.Closing),
		ByType: statementTypesReply{of(billing.TrialGrant), of(billing.Recharge), of(billing.HoldEntry),
			of(billing.ChargeEntry), of(billing.Release), of(billing.RefundEntry), of(billing.TrialExpiry),
			of(billing.Adjustment)},
		Items: items, Pagination: pagination}
}

// printed is an answer that has a page to print, too.
type printed interface {
	print(next string) ([]byte, error)
	pages() paginationReply
}

func (r statementReply) pages() paginationReply { return r.Pagination }

// print writes the page; next is the address of the one that follows, empty after the last.
func (r statementReply) print(next string) ([]byte, error) {
	show := func(m money) string { return domain.Money(m).String() }
	type row struct{ Name, Amount string }
	t := r.ByType
	data := map[string]any{"S": r, "Next": next, "Opening": show(r.OpeningBalance), "Closing": show(r.ClosingBalance),
		"Types": []row{{"Trial credit", show(t.TrialGrant)}, {"Recharges", show(t.Recharge)}, {"Holds", show(t.Hold)},
			{"Releases", show(t.Release)}, {"Refunds", show(t.Refund)}, {"Trial credit expired", show(t.TrialExpiry)},
			{"Corrections", show(t.Adjustment)}},
		"Show": show}
	var b bytes.Buffer
	err := statementPage.Execute(&b, data)
	return b.Bytes(), err
}

var statementPage = template.Must(template.New("statement").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Statement {{.S.Month}}</title></head><body>
<h1>Statement {{.S.Month}}</h1>
<p>Amounts in {{.S.Currency}}. The month is that of UTC.</p>
<table><tr><th align="left">Opening balance</th><td align="right">{{.Opening}}</td></tr>
{{range .Types}}<tr><td>{{.Name}}</td><td align="right">{{.Amount}}</td></tr>
{{end}}<tr><th align="left">Closing balance</th><td align="right">{{.Closing}}</td></tr></table>
<h2>Sessions</h2>
<table><tr><th align="left">Session</th><th align="left">Product</th><th>Held</th><th>Charged</th><th>Released</th>` +
	`<th>Refunded</th></tr>
{{$show := .Show}}{{range .S.Items}}<tr><td>{{.SessionID}}</td><td>{{.ProductNo}}</td>` +
	`<td align="right">{{call $show .Held}}</td><td align="right">{{call $show .Charged}}</td>` +
	`<td align="right">{{call $show .Released}}</td><td align="right">{{call $show .Refunded}}</td></tr>
{{else}}<tr><td colspan="6">None.</td></tr>
{{end}}</table>
{{with .Next}}<p><a href="{{.}}">More sessions</a></p>
{{end}}</body></html>
`))

// showPage writes the page to print of an answer.
func (s *Server) showPage(c *call, status int, p printed) {
	next := ""
	if cursor := p.pages().NextCursor; cursor != "" {
		query := c.gin.Request.URL.Query()
		query.Del("page")
		query.Set("cursor", string(cursor))
		next = "?" + query.Encode()
	}
	page, err := p.print(next)
	if err != nil {
		s.refuse(c, err)
		return
	}
	w := c.gin.Writer
	h := w.Header()
	h["Content-Type"] = []string{htmlType + "; charset=utf-8"}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(page) // an error means that the client is gone
}
