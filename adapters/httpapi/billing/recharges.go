package billing

import (
	"context"
	"net/http"
	"strings"
	"time"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/recharge"
)

// orderPath is the path of every operation on one recharge order.
type orderPath struct {
	OrderID string `path:"order_id" doc:"The order, prefix PAY."`
}

// id returns the order's id, or an error if the text cannot be one.
func (p orderPath) id() (string, error) {
	if len(p.OrderID) > 64 {
		return "", recharge.ErrNotFound
	}
	for _, c := range []byte(p.OrderID) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return "", recharge.ErrNotFound
		}
	}
	return p.OrderID, nil
}

type rechargeInput struct {
	endpoint.Purchase
	Body rechargeBody
}

type rechargeBody struct {
	_             struct{}      `json:"-" additionalProperties:"true"`
	Amount        value.Decimal `json:"amount" minimum:"1" maximum:"10000" doc:"US dollars with at most 2 decimals; 1 USDT is 1 USD."`
	PaymentMethod string        `json:"payment_method,omitempty" nullable:"true" enum:"usdt" doc:"usdt is the default and the only one."`
	Currency      string        `json:"currency,omitempty" nullable:"true" enum:"USD" doc:"Of amount; USD is the only one."`
	Network       string        `json:"network,omitempty" nullable:"true" enum:"TRC20" doc:"TRC20 is the only one."`
}

type rechargesInput struct {
	endpoint.Paging
	Status recharge.Status `query:"status" doc:"Only orders in this state."`
}

type rechargeReply struct {
	OrderID      string          `json:"order_id" pattern:"^PAY[0-9A-Za-z]+$" doc:"Names the order."`
	Status       recharge.Status `json:"status" doc:"Its state."`
	Amount       value.Money     `json:"amount" doc:"US dollars, as ordered."`
	AmountUSDT   value.Money     `json:"amount_usdt" doc:"USDT to send."`
	ReceivedUSDT value.Money     `json:"received_usdt" doc:"USDT of final transfers that count for this order; all is credited."`
	Currency     string          `json:"currency" enum:"USD" doc:"Of all amounts."`
	Network      string          `json:"network" enum:"TRC20" doc:"The network of the payment."`
	Test         bool            `json:"test" doc:"True on the development chain and test networks."`
	Wallet       string          `json:"wallet_address" maxLength:"34" doc:"The agent's own address on TRON. Send USDT (TRC20) only. Empty while no payments are taken."`
	ExpireTime   value.Stamp     `json:"expire_time" doc:"Send before this."`
	CreatedAt    value.Stamp     `json:"created_at" doc:"When it was made."`
}

// RechargeFields is rechargeReply under an exported name, by which huma reads it where it is embedded.
type RechargeFields = rechargeReply

type rechargeStatusReply struct {
	RechargeFields
	Partial       bool             `json:"partial" doc:"A part was received."`
	Missing       value.Money      `json:"missing_usdt" doc:"Not received yet."`
	Confirmations int              `json:"confirmations" minimum:"0" doc:"Blocks on top of the newest transfer."`
	Required      int              `json:"required_confirmations" minimum:"0" doc:"Blocks that make a transfer final."`
	TxHash        value.MaybeText  `json:"tx_hash" doc:"The transaction of the newest transfer; null: none was seen."`
	PaidAt        value.MaybeStamp `json:"paid_at" doc:"When the transfer that reached the amount was made; null: not yet."`
}

type rechargesReply struct {
	Items      []rechargeReply     `json:"items" doc:"This page."`
	Pagination endpoint.Pagination `json:"pagination" doc:"Where this page is in the list."`
}

// exampleWallet is an address that no wallet takes.
const exampleWallet = "TExampLe1111111111111111111111111x"

// network is the name of USDT on TRON in wallets.
const network = "TRC20"

const rechargeDoc = `Answers where to send amount_usdt in USDT (TRC20) before expire_time; then poll the status until it
is paid. The exchange's fee comes on top. The address is the agent's own and stays: every final transfer to it is
credited once, with or without an order. At most 10 orders are open at a time. dry_run creates nothing.`

// declareRecharges declares how money comes in.
func (s *service) declareRecharges() {
	endpoint.DeclareResult(s.api, endpoint.Operation{
		ID:         "create-recharge",
		Keys:       endpoint.WholeKeys,
		Method:     http.MethodPost,
		Path:       "/billing/recharge",
		Tag:        "billing",
		Summary:    "Order a recharge in USDT",
		Scope:      account.BillingWrite,
		Idempotent: true,
		Doc:        rechargeDoc,
		OK: []endpoint.Reply{
			{Status: http.StatusOK, Doc: "A dry run. It costs nothing and adds to the balance.", Data: exampleRechargeQuote},
			{Status: http.StatusCreated, Doc: "The order waits for its money.", Data: exampleRecharge},
		},
		Refuses: endpoint.Refusals(recharge.ErrLimit.With("limit", recharge.MaxOpen), recharge.ErrOff),
		Example: map[string]any{"amount": 25.5, "payment_method": "usdt"},
	}, s.createRecharge)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "list-recharges",
		Keys:    endpoint.WholeKeys,
		Method:  http.MethodGet,
		Path:    "/billing/recharge",
		Tag:     "billing",
		Summary: "The agent's recharge orders, newest first",
		CSV:     true,
		Doc:     "Orders of every state. " + endpoint.CSVDoc,
		Scope:   account.BillingRead,
		OK: []endpoint.Reply{
			{
				Status: http.StatusOK,
				Doc:    "A page of orders.",
				Data:   rechargesReply{[]rechargeReply{exampleRecharge}, endpoint.ExamplePagination},
			},
		},
	}, s.listRecharges)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-recharge-status",
		Keys:    endpoint.WholeKeys,
		Method:  http.MethodGet,
		Path:    "/billing/recharge/{order_id}/status",
		Tag:     "billing",
		Summary: "How far a recharge order is",
		Scope:   account.BillingRead,
		Refuses: endpoint.Refusals(recharge.ErrNotFound),
		Doc: `Poll every few seconds until paid. An order that expired is still paid by money that comes within 72 hours;
later money is credited without the order.`,
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The order.", Data: exampleRechargeStatus}},
	}, s.rechargeStatus)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-recharge-qr",
		Keys:    endpoint.WholeKeys,
		Method:  http.MethodGet,
		Path:    "/billing/recharge/{order_id}/qr",
		Tag:     "billing",
		Summary: "The wallet address of an order as a QR code",
		Scope:   account.BillingRead,
		Refuses: endpoint.Refusals(recharge.ErrNotFound, recharge.ErrOff),
		Doc:     "The code holds wallet_address alone; enter amount_usdt by hand.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "A PNG of at least 256 by 256 pixels, without envelope.",
			Data: endpoint.PNG{}}},
	}, s.rechargeCode)
}

func (s *service) listRecharges(ctx context.Context, in *rechargesInput) (int, rechargesReply, error) {
	list, err := s.Recharges.List(ctx, endpoint.Caller(ctx), in.Status, in.Asked())
	if err != nil {
		return 0, rechargesReply{}, err
	}
	items, pagination := endpoint.PageOf(list, toRecharge)
	return http.StatusOK, rechargesReply{items, pagination}, nil
}

func (s *service) rechargeStatus(ctx context.Context, in *orderPath) (int, rechargeStatusReply, error) {
	v, err := s.readOrder(ctx, in)
	return http.StatusOK, rechargeStatusReply{
		toRecharge(v.Order),
		v.Order.Partial(),
		value.Money(v.Order.Remainder()),
		v.Confirmations,
		v.Required,
		value.MaybeText(v.TxID),
		value.MaybeStamp(v.PaidAt),
	}, err
}

func (s *service) rechargeCode(ctx context.Context, in *orderPath) (int, endpoint.PNG, error) {
	v, err := s.readOrder(ctx, in)
	if err == nil && v.Address == "" {
		err = recharge.ErrOff
	}
	if err != nil {
		return 0, nil, err
	}
	p, err := drawCode(v.Address)
	return http.StatusOK, p, err
}

// createRecharge makes an order. It checks the amount by the text that was sent, so that no digit
// is lost.
func (s *service) createRecharge(ctx context.Context, in *rechargeInput) (endpoint.Result[any], error) {
	amount, err := domain.ParseMoney(string(in.Body.Amount))
	if err != nil {
		return endpoint.Result[any]{}, recharge.CheckAmount(0) // which is out of bounds too
	}
	done, err := s.Recharges.Create(
		ctx,
		payments.CreateOrder{AgentID: endpoint.Caller(ctx), Amount: amount, Call: in.Call(), DryRun: in.IsDry()},
	)
	if err != nil {
		return endpoint.Result[any]{}, err
	}
	if done.Quote != nil {
		return endpoint.Result[any]{Status: http.StatusOK, Data: endpoint.ToDryRun(ctx, done.Quote)}, nil
	}
	return endpoint.Result[any]{Status: endpoint.OutcomeStatus[done.Outcome], Data: toRecharge(done.View.Order),
			Replayed: done.Replayed},
		nil
}

func (s *service) readOrder(ctx context.Context, in *orderPath) (payments.OrderView, error) {
	id, err := in.id()
	if err != nil {
		return payments.OrderView{}, err
	}
	return s.Recharges.Get(ctx, endpoint.Caller(ctx), id)
}

func toRecharge(o recharge.Order) rechargeReply {
	return rechargeReply{OrderID: o.ID, Status: o.Status, Amount: value.Money(o.Amount), AmountUSDT: value.Money(o.Amount),
		ReceivedUSDT: value.Money(o.Received),
		Currency:     domain.Currency, Network: network, Test: o.Test(), Wallet: o.Address,
		ExpireTime: value.Stamp(o.ExpiresAt), CreatedAt: value.Stamp(o.CreatedAt)}
}

var (
	exampleRecharge = rechargeReply{
		OrderID:    "PAY20260515120000" + openapi.ExampleID,
		Status:     "pending",
		Amount:     openapi.USD("25.5"),
		AmountUSDT: openapi.USD("25.5"),
		Currency:   domain.Currency,
		Network:    network,
		Wallet:     exampleWallet,
		ExpireTime: value.Stamp(openapi.ExampleTime.Add(recharge.Window)),
		CreatedAt:  value.Stamp(openapi.ExampleTime),
	}
	exampleRechargeStatus = rechargeStatusReply{RechargeFields: paidExample(), Confirmations: 19, Required: 19,
		TxHash: value.MaybeText(strings.Repeat("9c1f", 16)),
		PaidAt: value.MaybeStamp(openapi.ExampleTime.Add(3 * time.Minute))}
	exampleRechargeQuote = endpoint.DryRun{DryRun: true, Cost: 0, Currency: domain.Currency,
		BalanceAfter: value.Limit{Of: new(domain.MustMoney("35.25"))}}
)

func paidExample() rechargeReply {
	r := exampleRecharge
	r.Status, r.ReceivedUSDT = "paid", r.AmountUSDT
	return r
}
