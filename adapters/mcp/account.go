package mcp

import (
	"context"
	"encoding/json"
	"net/http"

	"agentproxy/domain"
)

// accountData are the answers of the API that get_account joins.
type accountData struct {
	AgentID   string `json:"agent_id"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	Tier      string `json:"tier"`
	RateLimit struct {
		PerMinute int `json:"requests_per_minute"`
	} `json:"rate_limit"`
	Trial trial `json:"trial"`
}

type trial struct {
	IsTrial   bool        `json:"is_trial"`
	Balance   json.Number `json:"balance"`
	ExpiresAt *string     `json:"expires_at"`
}

type balanceData struct {
	Balance  json.Number `json:"balance"`
	Held     json.Number `json:"held"`
	Currency string      `json:"currency"`
	Key      *keyMoney   `json:"key"`
}

// keyMoney is what the key of the call may spend and has spent. Left is null without a limit.
type keyMoney struct {
	KeyID string       `json:"key_id"`
	Spent json.Number  `json:"spent"`
	Held  json.Number  `json:"held"`
	Left  *json.Number `json:"left"`
	Live  int          `json:"sessions_live"`
}

type budgetData struct {
	DailyLimit *json.Number `json:"daily_limit"`
	TotalLimit *json.Number `json:"total_limit"`
	Paused     bool         `json:"paused"`
	SpentToday json.Number  `json:"spent_today"`
	SpentTotal json.Number  `json:"spent_total"`
}

type accountAnswer struct {
	AgentID  string      `json:"agent_id"`
	Name     string      `json:"name"`
	Status   string      `json:"status"`
	Tier     string      `json:"tier"`
	Balance  json.Number `json:"balance"`
	Held     json.Number `json:"held"`
	Currency string      `json:"currency"`
	Trial    trial       `json:"trial"`
	// Budget is null for a key that sees its own sessions alone.
	Budget *budgetAnswer `json:"budget"`
	// Key is left out for a key without a restriction.
	Key    *keyMoney `json:"key,omitempty"`
	Limits limits    `json:"limits"`
}

type budgetAnswer struct {
	Paused     bool         `json:"paused"`
	DailyLimit *json.Number `json:"daily_limit"`
	SpentToday json.Number  `json:"spent_today"`
	// LeftToday is null without a daily limit.
	LeftToday *json.Number `json:"left_today"`
	LeftTotal *json.Number `json:"left_total"`
}

type limits struct {
	RequestsPerMinute int `json:"requests_per_minute"` // 0: unlimited
}

func getAccount(ctx context.Context, a *api, _ struct{}) (reply, error) {
	var info accountData
	if err := a.get(ctx, "/account/info", nil, &info); err != nil {
		return reply{}, err
	}
	var money balanceData
	if err := a.get(ctx, "/billing/balance", nil, &money); err != nil {
		return reply{}, err
	}
	var budget budgetData
	err := a.get(ctx, "/billing/budget", nil, &budget)
	hidden := err != nil && refusalOf(err).Code == "KEY_RESTRICTED"
	if err != nil && !hidden {
		return reply{}, err
	}
	next := "Call find_products to choose what to buy."
	if k := money.Key; k != nil && k.Left != nil && k.Left.String() == "0" {
		next = "The budget of this key is used up: end_session gives back what is not used."
	} else if amount, err := domain.ParseMoney(money.Balance.String()); err == nil && amount <= 0 {
		next = "Call recharge: the balance is used up."
	}
	if budget.Paused {
		next = "The budget is paused, so nothing can be bought until the account's owner resumes it; " +
			"list_sessions shows what is live."
	}
	answer := accountAnswer{AgentID: info.AgentID, Name: info.Name, Status: info.Status, Tier: info.Tier,
		Balance: money.Balance, Held: money.Held, Currency: money.Currency, Trial: info.Trial, Key: money.Key,
		Limits: limits{info.RateLimit.PerMinute}}
	if !hidden {
		answer.Budget = &budgetAnswer{Paused: budget.Paused, DailyLimit: budget.DailyLimit, SpentToday: budget.SpentToday,
			LeftToday: left(budget.DailyLimit, budget.SpentToday), LeftTotal: left(budget.TotalLimit, budget.SpentTotal)}
	}
	return reply{data: answer, next: next}, nil
}

// left returns what a limit leaves, at least 0; nil without a limit.
func left(limit *json.Number, spent json.Number) *json.Number {
	if limit == nil {
		return nil
	}
	most, err := domain.ParseMoney(limit.String())
	if err != nil {
		return nil
	}
	used, err := domain.ParseMoney(spent.String())
	if err != nil {
		return nil
	}
	return new(json.Number(max(most-used, 0).String()))
}

type orderData struct {
	OrderID  string      `json:"order_id"`
	Status   string      `json:"status"`
	Amount   json.Number `json:"amount"`
	USDT     json.Number `json:"amount_usdt"`
	Network  string      `json:"network"`
	Test     bool        `json:"test"`
	Wallet   string      `json:"wallet_address"`
	ExpireAt string      `json:"expire_time"`
}

func recharge(ctx context.Context, a *api, in struct {
	Amount     json.Number `json:"amount"`
	PurchaseID string      `json:"purchase_id"`
}) (reply, error) {
	var o orderData
	body := map[string]any{"amount": in.Amount, "payment_method": "usdt"}
	if err := a.post(ctx, "/billing/recharge", in.PurchaseID, body, &o); err != nil {
		return reply{}, err
	}
	r := reply{data: o, next: "Show the address, the amount and the QR code to the person who pays, " +
		"and call get_account until the balance has grown."}
	status, picture, err := a.Run(ctx, http.MethodGet, "/billing/recharge/"+o.OrderID+"/qr", "", nil)
	if err == nil && status == http.StatusOK {
		r.image = picture
	}
	return r, nil
}
