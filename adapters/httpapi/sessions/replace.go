package sessions

import (
	"context"
	"net/http"
	"net/netip"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/replacements"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/replacement"
	"agentproxy/ports"
)

type replaceInput struct {
	endpoint.Purchase
	sessionview.OneSession
	IP   string `path:"ip" doc:"An address of ip_list."`
	Body replaceBody
}

type replaceBody struct {
	Reason  procurement.Fault `json:"reason" doc:"What is wrong with it."`
	Refund  bool              `json:"refund,omitempty" doc:"If there is no other address, this one ends and its whole unused days come back."`
	MaxCost value.Decimal     `json:"max_cost,omitempty" minimum:"0" doc:"US dollars with at most 6 decimals; a dearer one is refused."`
}

// replacementReply is what became of an address, or would.
type replacementReply struct {
	ReplacementID string             `json:"replacement_id" doc:"Prefix rep_."`
	SessionID     string             `json:"session_id" doc:"Its user names and password stay."`
	Status        replacement.Status `json:"status" doc:"pending: its seller was asked. ended: without another address."`
	Ground        replacement.Ground `json:"ground" doc:"Why; the first two are free, once an IP."`
	IP            string             `json:"ip" doc:"That was given back."`
	NewIP         value.MaybeText    `json:"new_ip" doc:"In its place; null: none yet, or none."`
	Cost          value.Money        `json:"cost" doc:"That was charged."`
	Refunded      value.Money        `json:"refunded" doc:"For whole unused days."`
}

func toReplacement(r replacement.Replacement) replacementReply {
	reply := replacementReply{ReplacementID: r.ID, SessionID: r.SessionID, Status: r.Status, Ground: r.Ground,
		IP: r.Old.String(), Cost: value.Money(r.Fee), Refunded: value.Money(r.Refund)}
	if r.New.IsValid() {
		reply.NewIP = value.MaybeText(r.New.String())
	}
	return reply
}

var exampleReplacement = replacementReply{"rep_" + openapi.ExampleID, "sess_" + openapi.ExampleID,
	replacement.Done, replacement.Contradicted,
	"203.0.113.7", "203.0.113.9", 0, 0}

// declareReplace declares the replacement of an address.
func (s *service) declareReplace() {
	pending := exampleReplacement
	pending.Status, pending.NewIP = replacement.Pending, ""
	endpoint.DeclareResult(s.api, endpoint.Operation{
		ID:         "replace-ip",
		Keys:       endpoint.OwnSession,
		Method:     http.MethodPost,
		Path:       "/sessions/{session_id}/ips/{ip}/replace",
		Tag:        "sessions",
		Summary:    "Replace an address of a static session",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		Doc: "Another address in the same place for the rest of the time. Free once an IP within 24 hours of activation if " +
			"it was measured in another country, or three checks a minute apart failed; else only where its seller replaces, " +
			"at its price.",
		OK: []endpoint.Reply{
			{Status: http.StatusOK, Doc: "It is decided, or a dry run.",
				Data: exampleReplacement, Or: endpoint.ExampleDryRun},
			{Status: http.StatusAccepted, Doc: "The seller was asked; poll Location.", Data: pending},
		},
		Refuses: endpoint.And(sessionview.OfLive, replacement.ErrRefused, errPrice, catalog.ErrOutOfStock,
			exit.ErrNotMet, errBalance, billing.ErrBudgetExceeded, account.ErrKeyRestricted,
			ports.ErrProvider, ports.ErrTimeout),
		Example: map[string]any{"reason": "wrong_place"},
	}, s.replace)
}

func (s *service) replace(ctx context.Context, in *replaceInput) (r endpoint.Result[any], err error) {
	if err := s.mayCheck(ctx); err != nil { // its seller may be asked
		return r, err
	}
	ip, _ := netip.ParseAddr(in.IP) // what is none is no address of the session either
	done, err := s.Replacements.Replace(ctx, replacements.Replace{AgentID: endpoint.Caller(ctx),
		By: endpoint.Spender(ctx), SessionID: in.SessionID, IP: ip.Unmap(), Fault: in.Body.Reason, Refund: in.Body.Refund,
		MaxCost: in.Body.MaxCost.Money(), Call: in.Call(), DryRun: in.IsDry()})
	if err != nil {
		return r, err
	}
	if in.IsDry() {
		quote := endpoint.ToDryRun(ctx, done.Quote)
		quote.Refunded, quote.Ground = new(value.Money(done.Replacement.Refund)), string(done.Replacement.Ground)
		return endpoint.Result[any]{Status: http.StatusOK, Data: quote}, nil
	}
	r = endpoint.Result[any]{Status: http.StatusOK, Replayed: done.Replayed,
		Data: toReplacement(done.Replacement)}
	if done.Replacement.Status == replacement.Pending {
		r.Status, r.Location = http.StatusAccepted, endpoint.Prefix+"/sessions/"+in.SessionID
	}
	return r, nil
}
