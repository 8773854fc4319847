package billing

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

type statementInput struct {
	endpoint.Paging
	ByKey
	Month string `path:"month" doc:"YYYY-MM, a UTC month."`
}

type statementReply struct {
	Month          string               `json:"month" doc:"YYYY-MM, of UTC."`
	From           value.Stamp          `json:"from" doc:"The first moment of the period."`
	To             value.Stamp          `json:"to" doc:"Exclusive."`
	Currency       string               `json:"currency" enum:"USD" doc:"Of all amounts."`
	OpeningBalance value.Money          `json:"opening_balance" doc:"When the month began."`
	ClosingBalance value.Money          `json:"closing_balance" doc:"Of the current month so far."`
	Spent          value.Money          `json:"spent" doc:"Charged, less refunded."`
	OfBefore       value.Money          `json:"of_month_before" doc:"Of spent: used before."`
	Later          value.Money          `json:"in_month_after" doc:"Used in it, spent later."`
	ByType         amounts              `json:"by_type" doc:"Signed changes of the balance."`
	ByKey          *[]keyPartReply      `json:"by_key,omitempty" doc:"With by=key: the part of each key; together they are the account."`
	Items          []statementItemReply `json:"items" doc:"By session, the newest first."`
	Pagination     endpoint.Pagination  `json:"pagination" doc:"Where this page is in the list."`

	agent account.Agent // of the page to print
	shop  string        // its name there
}

// amounts are those of each type of entry.
type amounts map[billing.Type]domain.Money

// AppendJSON appends the value, with every type in its order.
func (a amounts) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, t := range billing.Types {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, string(t)), ':')
		b = value.Money(a[t]).AppendJSON(b)
	}
	return append(b, '}')
}

// MarshalJSON writes the object.
func (a amounts) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (amounts) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeNumber}}
}

type statementItemReply struct {
	SessionID string       `json:"session_id" doc:"The session."`
	Type      session.Type `json:"type" doc:"What kind it is."`
	ProductNo string       `json:"product_no" doc:"As GET /products lists it."`
	Held      value.Money  `json:"held" doc:"Of this month, as the rest."`
	Charged   value.Money  `json:"charged" doc:"What was charged, in US dollars."`
	Released  value.Money  `json:"released" doc:"Held and not used."`
	Refunded  value.Money  `json:"refunded" doc:"What was given back, in US dollars."`
	Amount    value.Money  `json:"amount" doc:"The signed change of the balance."`
}

// keyPartReply is what the sessions of a key did in a month.
type keyPartReply struct {
	KeyID          value.MaybeText `json:"key_id" doc:"null: of no session, or of sessions whose key is not known."`
	OpeningBalance value.Money     `json:"opening_balance" doc:"Signed: what was moved before."`
	ClosingBalance value.Money     `json:"closing_balance" doc:"Signed: what was moved until the end of the month."`
	Spent          value.Money     `json:"spent" doc:"Charged, less refunded."`
	Held           value.Money     `json:"held" doc:"Of this month, as the rest."`
	Charged        value.Money     `json:"charged" doc:"What was charged, in US dollars."`
	Released       value.Money     `json:"released" doc:"Held and not used."`
	Refunded       value.Money     `json:"refunded" doc:"What was given back, in US dollars."`
	Amount         value.Money     `json:"amount" doc:"The signed change of the balance."`
}

func toKeyPart(k ledger.KeyPart) keyPartReply {
	return keyPartReply{value.MaybeText(k.Key), value.Money(k.Opening), value.Money(k.Closing()), value.Money(k.Spent()),
		value.Money(k.Held), value.Money(k.Charged), value.Money(k.Released), value.Money(k.Refunded), value.Money(k.Amount)}
}

func (s *service) declareStatements() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-statement",
		Usage:   true,
		Keys:    endpoint.AnyKey,
		Method:  http.MethodGet,
		Path:    "/billing/statements/{month}",
		Tag:     "billing",
		Summary: "What a month did to the balance",
		Doc: "With Accept: text/html a page to print. With key what its sessions did, the balances too. " +
			endpoint.CSVDoc,
		Scope: account.BillingRead,
		CSV:   true,
		OK:    []endpoint.Reply{{Status: http.StatusOK, Doc: "The statement.", Data: exampleStatement}},
	}, func(ctx context.Context, in *statementInput) (int, statementReply, error) {
		page := in.Asked()
		if endpoint.CallIn(ctx).Filed() { // it has no pages
			page = domain.Page{Number: 1, Size: ledger.MaxStatement}
		}
		st, err := s.Wallet.ReadStatement(ctx, ledger.StatementQuery{AgentID: endpoint.Caller(ctx), Month: in.Month,
			Key: endpoint.KeyOf(ctx, in.Key), ByKey: in.By != "", Page: page})
		if err != nil {
			return 0, statementReply{}, err
		}
		r := toStatement(st)
		r.ByKey = partsOf(in.ByKey, st.ByKey, toKeyPart)
		r.shop = s.api.Shop
		return http.StatusOK, r, nil
	})
}

func toStatement(s ledger.Statement) statementReply {
	items, pagination := endpoint.PageOf(s.Items, func(i ports.StatementItem) statementItemReply {
		return statementItemReply{i.SessionID, i.Type, i.ProductNo, value.Money(i.Held), value.Money(i.Charged),
			value.Money(i.Released), value.Money(i.Refunded), value.Money(i.Amount)}
	})
	return statementReply{Month: s.From.Format("2006-01"), From: value.Stamp(s.From), To: value.Stamp(s.To),
		Currency:       domain.Currency,
		OpeningBalance: value.Money(s.Opening), ClosingBalance: value.Money(s.Closing),
		Spent: value.Money(s.Spent), OfBefore: value.Money(s.OfBefore), Later: value.Money(s.Later), ByType: s.ByType,
		Items: items, Pagination: pagination, agent: s.Agent}
}

func (r statementReply) Pages() endpoint.Pagination { return r.Pagination }

// Print writes the page; next is the address of the one that follows, empty after the last.
func (r statementReply) Print(next string) ([]byte, error) {
	show := func(m value.Money) string { return domain.Money(m).String() }
	type row struct{ Name, Amount string }
	t := r.ByType
	data := map[string]any{"S": r, "Next": next, "Opening": show(r.OpeningBalance), "Closing": show(r.ClosingBalance),
		"Spent": show(r.Spent), "Agent": r.agent, "Shop": r.shop,
		"Types": []row{
			{"Trial credit", show(value.Money(t[billing.TrialGrant]))},
			{"Recharges", show(value.Money(t[billing.Recharge]))},
			{"Holds", show(value.Money(t[billing.HoldEntry]))},
			{"Releases", show(value.Money(t[billing.Release]))},
			{"Refunds", show(value.Money(t[billing.RefundEntry]))},
			{"Trial credit expired", show(value.Money(t[billing.TrialExpiry]))},
			{"Corrections", show(value.Money(t[billing.Adjustment]))},
		},
		"Show": show}
	var b bytes.Buffer
	err := statementPage.Execute(&b, data)
	return b.Bytes(), err
}

var statementPage = template.Must(template.New("statement").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Shop}}: statement {{.S.Month}}</title></head><body>
<p>{{.Shop}}</p>
<h1>Statement {{.S.Month}}</h1>
<p>{{.Agent.Name}}{{with .Agent.ContactEmail}}, {{.}}{{end}} (account {{.Agent.ID}})</p>
<p>Amounts in {{.S.Currency}}. The month is that of UTC.</p>
<p><strong>Spent: {{.Spent}}</strong>, charged less refunded.
Of this {{call .Show .S.OfBefore}} was used in the month before.
{{call .Show .S.Later}} was used in this month and is spent in the next.</p>
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

var (
	exampleStatement = statementReply{"2026-05", value.Stamp(exampleMonth), value.Stamp(exampleMonth.AddDate(0, 1, 0)),
		domain.Currency, openapi.USD("10"), openapi.USD("9.97"),
		openapi.USD("0.03"), 0, 0,
		amounts{billing.HoldEntry: domain.MustMoney("-0.25"), billing.Release: domain.MustMoney("0.22")}, nil,
		[]statementItemReply{{openapi.ExampleSession, "dynamic", "dyn_global_1", openapi.USD("0.25"), openapi.USD("0.03"),
			openapi.USD("0.22"), 0,
			openapi.USD("-0.03")}},
		endpoint.ExamplePagination, account.Agent{}, ""}
	exampleMonth = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
)
