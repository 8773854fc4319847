package refusal

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/domain/procurement"
)

// UpstreamNotAllowed is UpstreamAuth for a provider that admits listed addresses only.
var UpstreamNotAllowed = UpstreamAuth.Note("the operator must add this host to the zone's allow list")

// rule maps what an upstream proxy answers to a refusal. It applies if the status is one
// of statuses and a word is one of words; an empty list applies to all. A word that ends
// in "*" matches all that begin so.
type rule struct {
	statuses []int
	words    []string
	refusal  *Refusal
}

// Providers use 401, 402 and 407 for more than credentials and payment and state the
// reason in words. The first rule that applies decides.
var (
	account = []int{http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusProxyAuthRequired}
	rules   = []rule{
		{nil, []string{"policy_*", "bad_endpoint"}, UpstreamRefused}, // Bright Data
		{nil, []string{"client_10050", "ip_blacklisted"}, UpstreamNotAllowed},
		{account, []string{"thread*", "concurren*", "rate"}, UpstreamBusy},
		{account, []string{"traffic", "exhausted", "balance", "limit*", "cap"}, UpstreamPayment},
		{[]int{http.StatusUnauthorized, http.StatusProxyAuthRequired}, nil, UpstreamAuth}, // tinyproxy answers 401
		{[]int{http.StatusPaymentRequired}, nil, UpstreamPayment},
		{[]int{http.StatusForbidden}, nil, UpstreamRefused},
		{[]int{http.StatusTooManyRequests}, nil, UpstreamBusy},
		{[]int{http.StatusGatewayTimeout}, nil, UpstreamTimeout},
		{nil, nil, UpstreamFailed},
	}
)

// FromAnswer returns the refusal that an upstream's answer to CONNECT means, with the
// provider's reason in HowToFix. body is at most the first MaxBody bytes of the answer's
// body and truncated is set if there may be more. now is what a date in Retry-After is
// compared with.
func FromAnswer(a *http1.Answer, body []byte, truncated bool, proxy *procurement.Endpoint, now time.Time) *Refusal {
	reason := upstreamReason(a, body, truncated, proxy)
	r := *classify(a.Status, reason)
	r.UpstreamStatus = a.Status
	if r.Code == CodeUpstreamBusy {
		r.RetryAfter = retryAfter(a.RetryAfter, now)
	}
	return r.ProviderAnswer(reason[:min(len(reason), maxReason)])
}

// classify returns the refusal of the first rule that applies to a status and the
// reason that came with it.
func classify(status int, reason string) *Refusal {
	words := wordsOf(reason)
	for _, r := range rules {
		if (len(r.statuses) == 0 || slices.Contains(r.statuses, status)) &&
			(len(r.words) == 0 || slices.ContainsFunc(words, r.names)) {
			return r.refusal
		}
	}
	return UpstreamFailed
}

// names reports whether the rule lists a word.
func (r rule) names(word string) bool {
	return slices.ContainsFunc(r.words, func(w string) bool {
		prefix, open := strings.CutSuffix(w, "*")
		return word == w || open && strings.HasPrefix(word, prefix)
	})
}

// wordsOf returns the words of a reason in lower case, those joined by "_" or "-" both
// together and apart: a code such as E_CAP_EXCEEDED states its reason in its parts.
func wordsOf(reason string) []string {
	joined := strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(reason), "-", "_"), func(c rune) bool {
		return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	words := slices.Clone(joined)
	for _, j := range joined {
		if strings.Contains(j, "_") {
			words = append(words, strings.Split(j, "_")...)
		}
	}
	return words
}
