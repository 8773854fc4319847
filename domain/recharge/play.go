package recharge

import "agentproxy/domain"

// Play is money of an agent that was paid on another network than the one that counts, such as the development
// chain, on which it costs nothing.
type Play struct {
	AgentID string
	Left    domain.Money // what of it is in the wallet, spendable or held
	Own     domain.Money // spendable own money, whichever it is
}

// WriteOff returns what can be written off now. What purchases hold is spendable again, or gone, once they have ended.
func (p Play) WriteOff() domain.Money { return max(min(p.Left, p.Own), 0) }

// PlayTotal sums what is left, and what of it cannot be written off yet.
func PlayTotal(list []Play) (left, held domain.Money) {
	for _, p := range list {
		left += p.Left
		held += p.Left - p.WriteOff()
	}
	return left, held
}

// RefPrefix begins the reference of every entry for a transfer of a network.
func RefPrefix(network string) string { return "usdt:" + network + ":" }
