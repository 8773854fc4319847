package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

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
	Purchase
	Body rechargeBody
}

type rechargeBody struct {
	_             struct{} `json:"-" additionalProperties:"true"`
	Amount        decimal  `json:"amount" minimum:"1" maximum:"10000" doc:"US dollars with at most 2 decimals; 1 USDT is 1 USD."`
	PaymentMethod string   `json:"payment_method,omitempty" nullable:"true" enum:"usdt" doc:"usdt is the default and the only one."`
}

type rechargesInput struct {
	Paging
	Status recharge.Status `query:"status"`
}

type rechargeReply struct {
	OrderID      string          `json:"order_id" pattern:"^PAY[0-9A-Za-z]+$"`
	Status       recharge.Status `json:"status"`
	Amount       money           `json:"amount" doc:"US dollars, as ordered."`
	AmountUSDT   money           `json:"amount_usdt" doc:"USDT to send."`
	ReceivedUSDT money           `json:"received_usdt" doc:"USDT of final transfers that count for this order; all of it is credited, also what is paid over."`
	Currency     string          `json:"currency" enum:"USD"`
	Network      string          `json:"network" enum:"TRC20"`
	Test         bool            `json:"test" doc:"Whether the money is not real: true on the development chain and on test networks."`
	Wallet       string          `json:"wallet_address" maxLength:"34" doc:"The agent's own address on TRON, 34 characters. Send USDT (TRC20) only. Empty while the service takes no payments."`
	ExpireTime   stamp           `json:"expire_time" doc:"Send before this."`
	CreatedAt    stamp           `json:"created_at"`
}

// RechargeFields is rechargeReply under an exported name, by which huma reads it where it is embedded.
type RechargeFields = rechargeReply

type rechargeStatusReply struct {
	RechargeFields
	Confirmations int        `json:"confirmations" minimum:"0" doc:"Blocks on top of the newest transfer, at most required_confirmations."`
	Required      int        `json:"required_confirmations" minimum:"0" doc:"Blocks that make a transfer final."`
	TxHash        maybeText  `json:"tx_hash" doc:"The transaction of the newest transfer; null: none was seen."`
	PaidAt        maybeStamp `json:"paid_at" doc:"When the transfer that reached the amount was made; null: not yet."`
}

type rechargesReply struct {
	Items      []rechargeReply `json:"items"`
	Pagination paginationReply `json:"pagination"`
}

// exampleWallet is an address that no wallet takes.
const exampleWallet = "TExampLe1111111111111111111111111x"

// network is the name of USDT on TRON in wallets.
const network = "TRC20"

const rechargeDoc = `Answers where to send amount_usdt in USDT (TRC20) before expire_time; then poll the status until it
is paid. The exchange's fee comes on top. The address is the agent's own and stays: every final transfer to it is
credited once, with or without an order. At most 10 orders are open at a time. dry_run creates nothing.`

// declareRecharges declares how money comes in.
func (s *billingService) declareRecharges() {
	opResult(s.api, operation{
		ID:         "create-recharge",
		Method:     http.MethodPost,
		Path:       "/billing/recharge",
		Tag:        "billing",
		Summary:    "Order a recharge in USDT",
		Scope:      account.BillingWrite,
		Idempotent: true,
		Doc:        rechargeDoc,
		OK: []reply{
			{Status: ok, Doc: "A dry run. It costs nothing and adds to the balance.", Data: exampleRechargeQuote},
			{Status: http.StatusCreated, Doc: "The order waits for its money.", Data: exampleRecharge},
		},
		Refuses: refusals(recharge.ErrLimit, recharge.ErrOff),
		Example: map[string]any{"amount": 25.5, "payment_method": "usdt"},
	}, s.createRecharge)
	op(s.api, operation{
		ID:      "list-recharges",
		Method:  http.MethodGet,
		Path:    "/billing/recharge",
		Tag:     "billing",
		Summary: "The agent's recharge orders, newest first",
		CSV:     true,
		Doc:     "Orders of every state, each with its address and amount. " + csvDoc,
		Scope:   account.BillingRead,
		OK: []reply{
			{
				Status: ok,
				Doc:    "A page of orders.",
				Data:   rechargesReply{[]rechargeReply{exampleRecharge}, examplePagination},
			},
		},
	}, s.listRecharges)
	op(s.api, operation{
		ID:      "get-recharge-status",
		Method:  http.MethodGet,
		Path:    "/billing/recharge/{order_id}/status",
		Tag:     "billing",
		Summary: "How far a recharge order is",
		Scope:   account.BillingRead,
		Refuses: refusals(recharge.ErrNotFound),
		Doc: `Poll every few seconds until paid. An order that expired is still paid by money that comes within 72 hours;
later money is credited without the order.`,
		OK: []reply{{Status: ok, Doc: "The order.", Data: exampleRechargeStatus}},
	}, s.rechargeStatus)
	op(s.api, operation{
		ID:      "get-recharge-qr",
		Method:  http.MethodGet,
		Path:    "/billing/recharge/{order_id}/qr",
		Tag:     "billing",
		Summary: "The wallet address of an order as a QR code",
		Scope:   account.BillingRead,
		Refuses: refusals(recharge.ErrNotFound, recharge.ErrOff),
		Doc: "The code holds wallet_address and nothing else: wallets take no address with an amount. Enter " +
			"amount_usdt by hand.",
		OK: []reply{{Status: ok, Doc: "A PNG of at least 256 by 256 pixels, without envelope.", Data: qrCode{}}},
	}, s.rechargeCode)
}

func (s *billingService) listRecharges(ctx context.Context, in *rechargesInput) (int, rechargesReply, error) {
	page, err := in.page(ctx)
	if err != nil {
		return 0, rechargesReply{}, err
	}
	list, err := s.Recharges.List(ctx, caller(ctx), in.Status, page)
	if err != nil {
		return 0, rechargesReply{}, err
	}
	items, pagination := toItems(list, toRecharge)
	return ok, rechargesReply{items, pagination}, nil
}

func (s *billingService) rechargeStatus(ctx context.Context, in *orderPath) (int, rechargeStatusReply, error) {
	v, err := s.readOrder(ctx, in)
	return ok, rechargeStatusReply{
		toRecharge(v.Order),
		v.Confirmations,
		v.Required,
		maybeText(v.TxID),
		maybeStamp(v.PaidAt),
	}, err
}

func (s *billingService) rechargeCode(ctx context.Context, in *orderPath) (int, qrCode, error) {
	v, err := s.readOrder(ctx, in)
	if err == nil && v.Address == "" {
		err = recharge.ErrOff
	}
	if err != nil {
		return 0, nil, err
	}
	p, err := drawCode(v.Address)
	return ok, p, err
}

// createRecharge makes an order. It checks the amount by the text that was sent, so that no digit
// is lost.
func (s *billingService) createRecharge(ctx context.Context, in *rechargeInput) (result[any], error) {
	key, dry, err := in.terms(ctx)
	if err != nil {
		return result[any]{}, err
	}
	amount, err := domain.ParseMoney(string(in.Body.Amount))
	if err != nil {
		return result[any]{}, recharge.CheckAmount(0) // which is out of bounds too
	}
	done, err := s.Recharges.Create(
		ctx,
		payments.CreateOrder{AgentID: caller(ctx), Amount: amount, Call: key, DryRun: dry},
	)
	if err != nil {
		return result[any]{}, err
	}
	if done.Quote != nil {
		return result[any]{Status: ok, Data: toQuote(done.Quote)}, nil
	}
	return result[any]{Status: outcomeStatus[done.Outcome], Data: toRecharge(done.View.Order), Replayed: done.Replayed},
		nil
}

func (s *billingService) readOrder(ctx context.Context, in *orderPath) (payments.OrderView, error) {
	id, err := in.id()
	if err != nil {
		return payments.OrderView{}, err
	}
	return s.Recharges.Get(ctx, caller(ctx), id)
}

func toRecharge(o recharge.Order) rechargeReply {
	return rechargeReply{OrderID: o.ID, Status: o.Status, Amount: money(o.Amount), AmountUSDT: money(o.Amount),
		ReceivedUSDT: money(o.Received), Currency: domain.Currency, Network: network, Test: o.Test(), Wallet: o.Address,
		ExpireTime: stamp(o.ExpiresAt), CreatedAt: stamp(o.CreatedAt)}
}

var (
	exampleRecharge = rechargeReply{
		OrderID:    "PAY20260515120000" + exampleID,
		Status:     "pending",
		Amount:     usd("25.5"),
		AmountUSDT: usd("25.5"),
		Currency:   domain.Currency,
		Network:    network,
		Wallet:     exampleWallet,
		ExpireTime: stamp(exampleTime.Add(recharge.Window)),
		CreatedAt:  stamp(exampleTime),
	}
	exampleRechargeStatus = rechargeStatusReply{RechargeFields: paidExample(), Confirmations: 19, Required: 19,
		TxHash: maybeText(strings.Repeat("9c1f", 16)), PaidAt: maybeStamp(exampleTime.Add(3 * time.Minute))}
	exampleRechargeQuote = dryRunReply{true, 0, domain.Currency, usd("35.25")}
)

func paidExample() rechargeReply {
	r := exampleRecharge
	r.Status, r.ReceivedUSDT = "paid", r.AmountUSDT
	return r
}
