package endpoint

import (
	"net/http"

	"agentproxy/domain"
	"agentproxy/ports"
)

// StatusOf gives each kind of refusal its status.
var StatusOf = map[domain.Kind]int{
	domain.Internal:         http.StatusInternalServerError,
	domain.Invalid:          http.StatusBadRequest,
	domain.Unauthorized:     http.StatusUnauthorized,
	domain.PaymentRequired:  http.StatusPaymentRequired,
	domain.Forbidden:        http.StatusForbidden,
	domain.NotFound:         http.StatusNotFound,
	domain.MethodNotAllowed: http.StatusMethodNotAllowed,
	domain.Misdirected:      http.StatusMisdirectedRequest,
	domain.Conflict:         http.StatusConflict,
	domain.Gone:             http.StatusGone,
	domain.TooLarge:         http.StatusRequestEntityTooLarge,
	domain.RateLimited:      http.StatusTooManyRequests,
	domain.BadGateway:       http.StatusBadGateway,
	domain.Unavailable:      http.StatusServiceUnavailable,
	domain.UpstreamTimeout:  http.StatusGatewayTimeout,
}

// OutcomeStatus is the HTTP status of an outcome.
var OutcomeStatus = map[ports.Outcome]int{
	ports.Completed: http.StatusOK,
	ports.Created:   http.StatusCreated,
	ports.Pending:   http.StatusAccepted,
}
