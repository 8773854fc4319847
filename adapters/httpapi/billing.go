package httpapi

import (
	"context"
	"net/http"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

type balanceReply struct {
	Balance  money      `json:"balance" doc:"What can be spent."`
	Currency string     `json:"currency" enum:"USD"`
	Held     money      `json:"held" doc:"Kept for what open sessions may still use."`
	Trial    trialReply `json:"trial"`
}

type transactionsInput struct {
	Paging
	Type billing.Type `query:"type"`
	From string       `query:"from" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, inclusive."`
	To   string       `query:"to" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, exclusive."`
}

type transactionReply struct {
	TransactionID string       `json:"transaction_id"`
	Type          billing.Type `json:"type"`
	Amount        money        `json:"amount" doc:"The signed change of the spendable balance."`
	BalanceAfter  money        `json:"balance_after"`
	ChargedAmount money        `json:"charged_amount" doc:"Of a charge: what it took of the held money."`
	Currency      string       `json:"currency" enum:"USD"`
	Description   string       `json:"description"`
	SessionID     maybeText    `json:"session_id"`
	OrderID       maybeText    `json:"order_id"`
	CreatedAt     stamp        `json:"created_at"`
}

type transactionsReply struct {
	Items      []transactionReply `json:"items"`
	Pagination paginationReply    `json:"pagination"`
}

type reportQuery struct {
	Paging
	Period string `query:"period" enum:"day,week,month" doc:"The current UTC day, or the last 7 or 30 days with it. day is the default."`
}

type reportReply struct {
	Period   string            `json:"period" enum:"day,week,month"`
	From     stamp             `json:"from"`
	To       stamp             `json:"to" doc:"Exclusive."`
	Currency string            `json:"currency" enum:"USD"`
	Totals   reportTotalsReply `json:"totals"`
	Items    []reportItemReply `json:"items" doc:"One for each session, the newest first."`

	Pagination *paginationReply `json:"pagination,omitempty" doc:"Only when page, page_size or cursor was sent; else items has all sessions."`
}

type reportTotalsReply struct {
	Charged  money     `json:"charged"`
	UsedGB   gigabytes `json:"used_gb"`
	Sessions int       `json:"sessions"`
}

type reportItemReply struct {
	SessionID   string       `json:"session_id"`
	Type        session.Type `json:"type"`
	ProductNo   string       `json:"product_no"`
	Charged     money        `json:"charged"`
	Refunded    money        `json:"refunded"`
	UsedGB      gigabytes    `json:"used_gb"`
	UsedBytes   int64        `json:"used_bytes"`
	Connections int64        `json:"connections"`
}

// billingUses are the use cases that the operations on money call.
type billingUses struct {
	Wallet    *ledger.Wallet
	Recharges *payments.Orders
	Stats     *ledger.Stats
}

// billingService serves the operations on money.
type billingService struct {
	billingUses
	api *API
}

// declareBillingFamily declares the operations on money, and the figures over all sessions.
func declareBillingFamily(a *API, u billingUses) {
	s := &billingService{u, a}
	s.declareBilling()
	s.declareStatements()
	s.declareBudget()
	s.declareRecharges()
	s.declareStats()
}

// declareBilling declares what shows the agent's money.
func (s *billingService) declareBilling() {
	op(s.api, operation{
		ID:      "get-balance",
		Method:  http.MethodGet,
		Path:    "/billing/balance",
		Tag:     "billing",
		Summary: "The balance",
		Doc:     "What can be spent, what is held for live sessions, and what of it is trial credit.",
		Scope:   account.BillingRead,
		OK:      []reply{{Status: ok, Doc: "The balance.", Data: exampleBalance}},
	}, func(ctx context.Context, _ *struct{}) (int, balanceReply, error) {
		b, err := s.Wallet.Balance(ctx, caller(ctx))
		w := b.Wallet
		return ok, balanceReply{money(w.Balance()), domain.Currency, money(b.Held),
			toTrial(w, b.IsTrial)}, err
	})
	op(s.api, operation{
		ID:      "list-transactions",
		Method:  http.MethodGet,
		Path:    "/billing/transactions",
		Tag:     "billing",
		Summary: "Every movement of the balance, newest first",
		Scope:   account.BillingRead,
		CSV:     true,
		Doc: "The sum of all amounts is the balance. A purchase is a hold, charges, and the release of the rest. " +
			csvDoc,
		OK: []reply{{Status: ok, Doc: "A page of transactions.", Data: exampleTransactions}},
	}, func(ctx context.Context, in *transactionsInput) (int, transactionsReply, error) {
		page, err := in.page(ctx)
		if err != nil {
			return 0, transactionsReply{}, err
		}
		filter := ports.LedgerFilter{Type: in.Type}
		if filter.From, filter.To, err = between(ctx, "from", "to"); err != nil {
			return 0, transactionsReply{}, err
		}
		list, err := s.Wallet.Transactions(ctx, caller(ctx), filter, page)
		if err != nil {
			return 0, transactionsReply{}, err
		}
		items, pagination := toItems(list, toTransaction)
		return ok, transactionsReply{items, pagination}, nil
	})
	op(s.api, operation{
		ID:      "get-usage-report",
		Method:  http.MethodGet,
		Path:    "/billing/usage-report",
		Tag:     "billing",
		Summary: "What each session used and cost in a period",
		CSV:     true,
		Doc: "By session, and the sum of all, for the current UTC day, or the last 7 or 30 days with it. All sessions, " +
			"unless page, page_size or cursor asks for a page of them. " + csvDoc,
		Scope: account.BillingRead,
		OK:    []reply{{Status: ok, Doc: "The report.", Data: exampleReport}},
	}, func(ctx context.Context, in *reportQuery) (int, reportReply, error) {
		page, err := in.page(ctx)
		if err != nil {
			return 0, reportReply{}, err
		}
		paged := in.asked(ctx)
		if !paged {
			page = domain.Page{}
		}
		r, err := s.Wallet.UsageReport(ctx, caller(ctx), in.Period, page)
		return ok, toReport(r, paged), err
	})
}

func toTransaction(e billing.Entry) transactionReply {
	return transactionReply{
		TransactionID: e.ID,
		Type:          e.Type,
		Amount:        money(e.Amount()),
		BalanceAfter:  money(e.BalanceAfter),
		ChargedAmount: money(e.Charged()),
		Currency:      domain.Currency,
		Description:   e.Description,
		SessionID:     maybeText(e.SessionID),
		OrderID:       maybeText(e.OrderID),
		CreatedAt:     stamp(e.At),
	}
}

func toReport(r ledger.UsageReport, paged bool) reportReply {
	items, pagination := toItems(r.Sessions, func(t ports.SessionTotal) reportItemReply {
		return reportItemReply{t.SessionID, t.Type, t.ProductNo, money(t.Charged), money(t.Refunded),
			gigabytes(t.Up + t.Down), t.Up + t.Down, t.Connections}
	})
	report := reportReply{Period: r.Period, From: stamp(r.From), To: stamp(r.To), Currency: domain.Currency,
		Totals: reportTotalsReply{money(r.Totals.Charged), gigabytes(r.Totals.Up + r.Totals.Down), r.Sessions.Total},
		Items:  items}
	if paged {
		report.Pagination = &pagination
	}
	return report
}

var (
	exampleBalance      = balanceReply{usd("9.75"), domain.Currency, usd("0.25"), exampleTrial}
	exampleTransactions = transactionsReply{
		[]transactionReply{{TransactionID: "txn_" + exampleID, Type: "hold", Amount: usd("-0.25"),
			BalanceAfter: usd(
				"9.75",
			), Currency: domain.Currency, Description: "1 GB of dyn_global_1", SessionID: exampleSession,
			CreatedAt: stamp(exampleTime)}},
		examplePagination,
	}
	exampleReport = reportReply{
		"day",
		stamp(exampleTime.Truncate(24 * time.Hour)),
		stamp(exampleTime.Truncate(24 * time.Hour).Add(24 * time.Hour)),
		domain.Currency,
		reportTotalsReply{usd("0.03"), 120_000_000, 1},
		[]reportItemReply{{exampleSession, "dynamic", "dyn_global_1", usd("0.03"), 0, 120_000_000, 120_000_000, 12}},
		nil,
	}
)
