package openapi

// responseNames are the names of the refusals that most operations share, by those made of their codes.
var responseNames = map[string]string{
	"AuthExpiredTokenOrAuthInvalidKey":            "Unauthorized",
	"AccountDisabledOrAuthInsufficientPermission": "Forbidden",
	"RateLimitExceededOrStorageLimit":             "RateOrStorage",
}

// headerNames are the short names of headers that most answers have: each is referred to a hundred times.
var headerNames = map[string]string{"Request-ID": "ID", "Remaining": "Left", "Idempotency-Replayed": "Replayed"}
