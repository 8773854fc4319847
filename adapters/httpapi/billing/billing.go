// Package billing declares the operations on an agent's money, and the figures over all its sessions.
package billing

import (
	"context"
	"net/http"
	"time"

	"agentproxy/adapters/httpapi/accounts"
	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/ledger"
	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

type balanceReply struct {
	Balance  value.Money    `json:"balance" doc:"What can be spent."`
	Currency string         `json:"currency" enum:"USD" doc:"Of all amounts."`
	Held     value.Money    `json:"held" doc:"Kept for what open sessions may still use."`
	Trial    accounts.Trial `json:"trial" doc:"The trial credit."`
	Key      *keyMoneyReply `json:"key" doc:"Of the key of this call; null without a restriction."`
}

type keyMoneyReply struct {
	KeyID string      `json:"key_id" doc:"Names the key."`
	Spent value.Money `json:"spent" doc:"Charged for the sessions that it bought, less what was refunded."`
	Held  value.Money `json:"held" doc:"What they hold."`
	Left  value.Limit `json:"left" doc:"The least that any limit leaves for one purchase; null without one."`
	Live  int         `json:"sessions_live" doc:"Live sessions that it bought."`
}

// byKey is what a list or a report takes to narrow it to a key, or to sum it by key.
type byKey struct {
	Key string `query:"key" maxLength:"64" doc:"Only sessions that this key bought."`
	By  string `query:"by" enum:"key" doc:"key adds by_key, the sums of each key."`
}

// ByKey is byKey under an exported name, by which huma reads it where it is embedded.
type ByKey = byKey

// partsOf returns what by_key has: nil unless it was asked for.
func partsOf[T, R any](in byKey, list []T, of func(T) R) *[]R {
	if in.By == "" {
		return nil
	}
	parts := value.Each(list, of)
	return &parts
}

type transactionsInput struct {
	endpoint.Paging
	ByKey
	Type billing.Type `query:"type" doc:"Only movements of this type."`
	From string       `query:"from" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, inclusive."`
	To   string       `query:"to" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, exclusive."`
}

type transactionReply struct {
	TransactionID string          `json:"transaction_id" doc:"Names the movement."`
	Type          billing.Type    `json:"type" doc:"What kind it is."`
	Amount        value.Money     `json:"amount" doc:"The signed change of the spendable balance."`
	BalanceAfter  value.Limit     `json:"balance_after" doc:"The balance after this movement; null for a key with own."`
	ChargedAmount value.Money     `json:"charged_amount" doc:"Of a charge: what it took of the held money."`
	Currency      string          `json:"currency" enum:"USD" doc:"Of all amounts."`
	Description   string          `json:"description" doc:"What moved the money, for people."`
	SessionID     value.MaybeText `json:"session_id" doc:"The session that it belongs to, or null."`
	OrderID       value.MaybeText `json:"order_id" doc:"The recharge order, or null."`
	CreatedAt     value.Stamp     `json:"created_at" doc:"When it was made."`
}

type transactionsReply struct {
	Items      []transactionReply  `json:"items" doc:"This page."`
	Pagination endpoint.Pagination `json:"pagination" doc:"Where this page is in the list."`
	ByKey      *[]keyEntriesReply  `json:"by_key,omitempty" doc:"With by=key: the sums of the whole list."`
}

type keyEntriesReply struct {
	KeyID         value.MaybeText `json:"key_id" doc:"null: of no session, or of one whose key is not known."`
	Transactions  int             `json:"transactions" doc:"How many there are."`
	Amount        value.Money     `json:"amount" doc:"The signed change of the spendable balance."`
	ChargedAmount value.Money     `json:"charged_amount" doc:"What charges took of the held money."`
}

type reportQuery struct {
	endpoint.Paging
	ByKey
	Period string `query:"period" enum:"day,week,month" doc:"The current UTC day, or the last 7 or 30 days with it. day is the default."`
}

type reportReply struct {
	Period   string            `json:"period" enum:"day,week,month" enumName:"Period" doc:"The length of the period."`
	From     value.Stamp       `json:"from" doc:"The first moment of the period."`
	To       value.Stamp       `json:"to" doc:"Exclusive."`
	Currency string            `json:"currency" enum:"USD" doc:"Of all amounts."`
	Totals   reportTotalsReply `json:"totals" doc:"The sum of all items."`
	Items    []reportItemReply `json:"items" doc:"One for each session, the newest first."`

	ByKey      *[]keyTotalsReply    `json:"by_key,omitempty" doc:"With by=key: the totals of each key."`
	Pagination *endpoint.Pagination `json:"pagination,omitempty" doc:"Only when page, page_size or cursor was sent; else items has all sessions."`
}

type reportTotalsReply struct {
	Charged  value.Money     `json:"charged" doc:"What was charged, in US dollars."`
	UsedGB   value.Gigabytes `json:"used_gb" doc:"What was used, in GB of 1,000,000,000 bytes."`
	Sessions int             `json:"sessions" doc:"How many sessions there were."`
}

type keyTotalsReply struct {
	KeyID       value.MaybeText `json:"key_id" doc:"null: of sessions whose key is not known."`
	Sessions    int             `json:"sessions" doc:"How many sessions there were."`
	Charged     value.Money     `json:"charged" doc:"What was charged, in US dollars."`
	Refunded    value.Money     `json:"refunded" doc:"What was given back, in US dollars."`
	UsedGB      value.Gigabytes `json:"used_gb" doc:"What was used, in GB of 1,000,000,000 bytes."`
	UsedBytes   int64           `json:"used_bytes" doc:"What was used, in bytes."`
	Connections int64           `json:"connections" doc:"How many there were."`
}

type reportItemReply struct {
	SessionID   string          `json:"session_id" doc:"The session."`
	Type        session.Type    `json:"type" doc:"What kind it is."`
	ProductNo   string          `json:"product_no" doc:"As GET /products lists it."`
	Charged     value.Money     `json:"charged" doc:"What was charged, in US dollars."`
	Refunded    value.Money     `json:"refunded" doc:"What was given back, in US dollars."`
	UsedGB      value.Gigabytes `json:"used_gb" doc:"What was used, in GB of 1,000,000,000 bytes."`
	UsedBytes   int64           `json:"used_bytes" doc:"What was used, in bytes."`
	Connections int64           `json:"connections" doc:"How many there were."`
}

// UseCases are the use cases that the operations on money call.
type UseCases struct {
	Wallet    *ledger.Wallet
	Recharges *payments.Orders
	Stats     *ledger.Stats
}

// service serves the operations on money.
type service struct {
	UseCases
	api *endpoint.API
}

// Declare declares the operations on money, and the figures over all sessions.
func Declare(a *endpoint.API, u UseCases) {
	s := &service{u, a}
	s.declareBilling()
	s.declareStatements()
	s.declareBudget()
	s.declareRecharges()
	s.declareStats()
}

// declareBilling declares what shows the agent's money.
func (s *service) declareBilling() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-balance",
		Usage:   true,
		Keys:    endpoint.AnyKey,
		Method:  http.MethodGet,
		Path:    "/billing/balance",
		Tag:     "billing",
		Summary: "The balance",
		Doc:     "What can be spent, what is held for live sessions, and what of it is trial credit.",
		Scope:   account.BillingRead,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The balance.", Data: exampleBalance}},
	}, func(ctx context.Context, _ *struct{}) (int, balanceReply, error) {
		b, err := s.Wallet.Balance(ctx, endpoint.Caller(ctx))
		if err != nil {
			return 0, balanceReply{}, err
		}
		r := balanceReply{value.Money(b.Wallet.Balance()), domain.Currency, value.Money(b.Held),
			accounts.ToTrial(b.Wallet, b.IsTrial), nil}
		return http.StatusOK, r, s.addKey(ctx, &r)
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "list-transactions",
		Usage:   true,
		Keys:    endpoint.AnyKey,
		Method:  http.MethodGet,
		Path:    "/billing/transactions",
		Tag:     "billing",
		Summary: "Every movement of the balance, newest first",
		Scope:   account.BillingRead,
		CSV:     true,
		Doc: "The sum of all amounts is the balance. A purchase is a hold, charges, and the release of the rest. " +
			endpoint.CSVDoc,
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "A page of transactions.", Data: exampleTransactions}},
	}, s.listTransactions)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-usage-report",
		Usage:   true,
		Keys:    endpoint.AnyKey,
		Method:  http.MethodGet,
		Path:    "/billing/usage-report",
		Tag:     "billing",
		Summary: "What each session used and cost in a period",
		CSV:     true,
		Doc: "By session, and the sum of all, for the current UTC day, or the last 7 or 30 days with it. All sessions, " +
			"unless page, page_size or cursor asks for a page of them. " + endpoint.CSVDoc,
		Scope: account.BillingRead,
		OK:    []endpoint.Reply{{Status: http.StatusOK, Doc: "The report.", Data: exampleReport}},
	}, func(ctx context.Context, in *reportQuery) (int, reportReply, error) {
		page, paged := in.Asked(), in.PageGiven(ctx)
		if !paged {
			page = domain.Page{}
		}
		r, err := s.Wallet.Report(ctx, ledger.ReportQuery{AgentID: endpoint.Caller(ctx), Period: in.Period,
			Key: endpoint.KeyOf(ctx, in.Key), ByKey: in.By != "", Page: page})
		report := toReport(r, paged)
		report.ByKey = partsOf(in.ByKey, r.ByKey, toKeyTotals)
		return http.StatusOK, report, err
	})
}

func (s *service) listTransactions(ctx context.Context, in *transactionsInput) (int, transactionsReply, error) {
	from, to, err := endpoint.Between(ctx, "from", "to")
	if err != nil {
		return 0, transactionsReply{}, err
	}
	filter := ports.LedgerFilter{Type: in.Type, Key: endpoint.KeyOf(ctx, in.Key), From: from, To: to}
	list, err := s.Wallet.Transactions(ctx, endpoint.Caller(ctx), filter, in.Asked())
	if err != nil {
		return 0, transactionsReply{}, err
	}
	items, pagination := endpoint.PageOf(list, toTransaction)
	if endpoint.Spender(ctx).OwnKey() != "" { // it is the account's
		for i := range items {
			items[i].BalanceAfter = value.Limit{}
		}
	}
	r := transactionsReply{Items: items, Pagination: pagination}
	if in.By != "" {
		sums, err := s.Wallet.TransactionsByKey(ctx, endpoint.Caller(ctx), filter)
		if err != nil {
			return 0, transactionsReply{}, err
		}
		r.ByKey = partsOf(in.ByKey, sums, toKeyEntries)
	}
	return http.StatusOK, r, nil
}

// addKey adds what a restricted key may spend, in place of what the account has if it sees its own sessions alone.
func (s *service) addKey(ctx context.Context, r *balanceReply) error {
	by := endpoint.Spender(ctx)
	if !by.Restricted {
		return nil
	}
	k, restricted, err := s.Wallet.Key(ctx, endpoint.Caller(ctx), by.KeyID)
	if err != nil || !restricted {
		return err
	}
	r.Key = &keyMoneyReply{KeyID: by.KeyID, Spent: value.Money(k.Spent), Held: value.Money(k.Held), Live: k.LiveSessions}
	if k.Limited {
		r.Key.Left.Of = &k.Left
	}
	if by.Own {
		r.Held, r.Trial.Balance = r.Key.Held, 0
		if k.Limited {
			r.Balance = value.Money(k.Left)
		}
	}
	return nil
}

func toTransaction(e billing.Entry) transactionReply {
	return transactionReply{
		TransactionID: e.ID,
		Type:          e.Type,
		Amount:        value.Money(e.Amount()),
		BalanceAfter:  value.Limit{Of: &e.BalanceAfter},
		ChargedAmount: value.Money(e.Charged()),
		Currency:      domain.Currency,
		Description:   e.Description,
		SessionID:     value.MaybeText(e.SessionID),
		OrderID:       value.MaybeText(e.OrderID),
		CreatedAt:     value.Stamp(e.At),
	}
}

func toKeyEntries(k ports.KeyEntries) keyEntriesReply {
	return keyEntriesReply{value.MaybeText(k.Key), k.Entries, value.Money(k.Amount), value.Money(k.Charged)}
}

func toKeyTotals(k ledger.KeyTotals) keyTotalsReply {
	return keyTotalsReply{value.MaybeText(k.Key), k.Sessions, value.Money(k.Charged), value.Money(k.Refunded),
		value.Gigabytes(k.Up + k.Down), k.Up + k.Down, k.Connections}
}

func toReport(r ledger.UsageReport, paged bool) reportReply {
	items, pagination := endpoint.PageOf(r.Sessions, func(t ports.SessionTotal) reportItemReply {
		return reportItemReply{t.SessionID, t.Type, t.ProductNo, value.Money(t.Charged), value.Money(t.Refunded),
			value.Gigabytes(t.Up + t.Down), t.Up + t.Down, t.Connections}
	})
	report := reportReply{Period: r.Period, From: value.Stamp(r.From), To: value.Stamp(r.To), Currency: domain.Currency,
		Totals: reportTotalsReply{value.Money(r.Totals.Charged), value.Gigabytes(r.Totals.Up + r.Totals.Down),
			r.Sessions.Total},
		Items: items}
	if paged {
		report.Pagination = &pagination
	}
	return report
}

var (
	exampleBalance = balanceReply{openapi.USD("9.75"), domain.Currency, openapi.USD("0.25"),
		accounts.ExampleTrial, nil}
	exampleTransactions = transactionsReply{
		Items: []transactionReply{{TransactionID: "txn_" + openapi.ExampleID, Type: "hold", Amount: openapi.USD("-0.25"),
			BalanceAfter: value.Limit{Of: new(domain.MustMoney("9.75"))}, Currency: domain.Currency,
			Description: "1 GB of dyn_global_1", SessionID: openapi.ExampleSession,
			CreatedAt: value.Stamp(openapi.ExampleTime)}},
		Pagination: endpoint.ExamplePagination,
	}
	exampleReport = reportReply{
		"day",
		value.Stamp(openapi.ExampleTime.Truncate(24 * time.Hour)),
		value.Stamp(openapi.ExampleTime.Truncate(24 * time.Hour).Add(24 * time.Hour)),
		domain.Currency,
		reportTotalsReply{openapi.USD("0.03"), 120_000_000, 1},
		[]reportItemReply{{openapi.ExampleSession, "dynamic", "dyn_global_1", openapi.USD("0.03"), 0, 120_000_000,
			120_000_000, 12}},
		nil,
		nil,
	}
)
