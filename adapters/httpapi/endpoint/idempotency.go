package endpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"

	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/domain"
)

// Idempotent is the header of calls that can be repeated safely.
type Idempotent struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" patternDescription:"printable ASCII" doc:"1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did; kept 24 hours."`

	call idempotency.Call
}

// Call returns the key of a call with what the call means.
func (i *Idempotent) Call() idempotency.Call { return i.call }

// readKey reads the key of a call and hashes what the call means: spacing and the
// order of keys in the body do not matter.
func (i *Idempotent) readKey(c *Call) error {
	values := c.gin.Request.Header["Idempotency-Key"]
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 || values[0] == "" {
		return domain.InvalidField(
			"Idempotency-Key",
			"must be one value of 1 to 255 printable ASCII characters",
		)
	}
	path := c.gin.Request.URL.Path
	h := sha256.New()
	h.Write([]byte(c.op.Method + "\n" + path + "\n"))
	h.Write(canonical(c.Body))
	if own := c.Caller.Spender().OwnKey(); own != "" { // calls of others do not exist for it
		path += "#" + own
	}
	i.call = idempotency.Call{Key: i.Key, Path: path, Hash: h.Sum(nil), Refusal: c.overBudget}
	return nil
}

// Tried is the query of a call that can be tried first.
type Tried struct {
	DryRun string `query:"dry_run" enum:"true,false" doc:"true validates everything and answers the cost; nothing is stored."`
}

// IsDry reports whether the call is a dry run.
func (t *Tried) IsDry() bool { return t.DryRun == "true" }

// readDry refuses an empty parameter, which is neither.
func (*Tried) readDry(c *Call) error {
	if v, given := c.Query("dry_run"); given && v == "" {
		return domain.InvalidField("dry_run", "must be true or false")
	}
	return nil
}

// Purchase is the header and the query of a call that costs money.
type Purchase struct {
	Idempotent
	Tried
}

// canonical writes a checked body without insignificant space and with sorted
// keys; numbers keep their digits.
func canonical(body []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return body
	}
	text, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return text
}

// DryRun is what a call would cost and leave.
type DryRun struct {
	DryRun       bool         `json:"dry_run" enum:"true" doc:"Always true."`
	Cost         value.Money  `json:"cost" doc:"What the call would cost, in US dollars."`
	Currency     string       `json:"currency" enum:"USD" doc:"Of all amounts."`
	BalanceAfter value.Limit  `json:"balance_after" doc:"The balance that the call would leave; null for a key with own."`
	Refunded     *value.Money `json:"refunded,omitempty" doc:"What would be returned."`
	Forfeited    *value.Money `json:"forfeited,omitempty" doc:"What ending a session would give up of what was paid."`
	Ground       string       `json:"ground,omitempty" doc:"On which an address would be replaced."`
}

// ToDryRun returns the reply that shows a quote. The balance is the account's, which a key with own does not see.
func ToDryRun(ctx context.Context, q *ledger.Quote) DryRun {
	r := DryRun{DryRun: true, Cost: value.Money(q.Cost), Currency: domain.Currency}
	if Spender(ctx).OwnKey() == "" {
		r.BalanceAfter = value.Limit{Of: &q.BalanceAfter}
	}
	return r
}

// ExampleDryRun is the dry run that the document shows.
var ExampleDryRun = DryRun{DryRun: true, Cost: value.Money(domain.MustMoney("0.25")), Currency: domain.Currency,
	BalanceAfter: value.Limit{Of: new(domain.MustMoney("9.75"))}}
