package ports

import (
	"errors"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
)

// The errors that an agent gets when a provider failed and provably nothing was bought.
var (
	ErrProvider = &domain.Error{Kind: domain.BadGateway, Code: "PROVIDER_ERROR", Retryable: true,
		Message: "the upstream failed and nothing was bought; try again"}
	ErrTimeout = &domain.Error{Kind: domain.UpstreamTimeout, Code: "PROVIDER_TIMEOUT", Retryable: true,
		Message: "the upstream did not answer and nothing was bought; try again"}
)

// Refusal returns the error that an agent gets for a provider's refusal. Which provider it was,
// and in what words, is for the operator only.
func Refusal(c procurement.Class) *domain.Error {
	switch c {
	case procurement.OutOfStock:
		return catalog.ErrOutOfStock
	case procurement.TimedOut:
		return ErrTimeout
	}
	return ErrProvider
}

// NothingBought reports whether an error is what Refusal returns, after which
// provably nothing was bought.
func NothingBought(err error) bool {
	return errors.Is(err, ErrProvider) || errors.Is(err, ErrTimeout) || errors.Is(err, catalog.ErrOutOfStock) ||
		errors.Is(err, exit.ErrNotMet)
}
