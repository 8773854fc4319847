package codec

import (
	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// Funds returns funds from two columns.
func Funds(trial, own int64) billing.Funds {
	return billing.Funds{Trial: domain.Money(trial), Own: domain.Money(own)}
}
