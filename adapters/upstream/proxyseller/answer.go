package upstream

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
)

// proxySellerAnswer is the envelope of an answer that explainProxySeller took for
// a success; Data points to what it holds.
type proxySellerAnswer struct {
	Data any `json:"data"`
}

// proxySellerError is one entry of errors[], or the whole body of a plain 400.
type proxySellerError struct {
	Message string      `json:"message"`
	Code    json.Number `json:"code"` // a number, or a text that is one
}

// explainProxySeller reads the envelope {status, data, errors[]}, whose HTTP
// status is almost always 200. It returns nil for a success, and for what the HTTP
// status tells: 429 comes from an edge in front of the API, so nothing was
// executed; 5xx tells nothing.
func explainProxySeller(status int, body []byte, money bool, hide func(string) string) *procurement.Error {
	refuse := func(c procurement.Class, words string) *procurement.Error {
		// Hidden before it is cut: half a key is a secret too.
		return procurement.Refuse(c, plain(hide(words)))
	}
	unclear, odd := procurement.Invalid, procurement.Temporary
	if money {
		unclear, odd = procurement.Ambiguous, procurement.Ambiguous
	}
	switch {
	case status == 400 || status == 422: // outside the envelope, and before anything was done
		var e proxySellerError
		if json.Unmarshal(body, &e) != nil || e.Message == "" {
			return nil
		}
		if f := classifyProxySeller([]proxySellerError{e}, procurement.Invalid, refuse); f.Class != procurement.Ambiguous {
			return f
		}
		return refuse(procurement.Invalid, e.Message)
	case status < 200 || status > 299:
		return nil
	}
	var e struct {
		Status string
		Data   json.RawMessage
		Errors []proxySellerError
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return refuse(odd, errProxySellerShape)
	}
	switch {
	case e.Status == "success" && len(e.Errors) == 0:
		return nil
	case e.Status == "error" && len(e.Errors) > 0:
		return classifyProxySeller(e.Errors, unclear, refuse)
	case e.Status == "error":
		// What is wrong is a warning among the data.
		var data struct{ Warning string }
		if json.Unmarshal(e.Data, &data) == nil && data.Warning != "" {
			return classifyProxySeller([]proxySellerError{{Message: data.Warning, Code: "0"}}, unclear, refuse)
		}
	}
	return refuse(odd, errProxySellerShape)
}

// classifyProxySeller tells what errors mean. Codes are from the official client's
// README; what is on no list has the class unclear.
func classifyProxySeller(errs []proxySellerError, unclear procurement.Class, refuse func(procurement.Class, string) *procurement.Error) *procurement.Error {
	var words []string
	access, limited := 0, 0
	for _, e := range errs {
		words = append(words, e.Message+" ("+string(e.Code)+")")
		switch e.Code {
		case "2", "3", "503":
			access++
			if strings.Contains(strings.ToLower(e.Message), "limit") {
				limited++
			}
		}
	}
	text, first := strings.Join(words, ", "), strings.ToLower(errs[0].Message)
	// 503 is a wrong key, an address that is not allowed, or too many requests,
	// told apart by the text alone. Version 2 says all three at once: then it may
	// be the key, and the operator has to look.
	if access > 0 {
		if limited < access {
			return refuse(procurement.Auth, text)
		}
		e := refuse(procurement.RateLimited, text)
		e.RetryAfter = time.Minute // the limit is counted by the minute
		return e
	}
	switch errs[0].Code {
	case "57": // a renewal of this order runs already: perhaps ours
		return refuse(procurement.Ambiguous, text)
	case "13", "14": // the protocol, the purpose
		return refuse(procurement.Invalid, text)
	case "35": // "Unknown error"
		if unclear == procurement.Ambiguous {
			return refuse(procurement.Ambiguous, text)
		}
		return refuse(procurement.Temporary, text)
	case "404":
		return refuse(procurement.NotFound, text)
	case "0", "":
		switch {
		case strings.HasPrefix(first, "insufficient funds"):
			return refuse(procurement.InsufficientFunds, text)
		case strings.HasPrefix(first, "tarif not found"), strings.HasPrefix(first, "set [ traffic_limit ] less than"):
			// There is no residential tariff, or too little left of it.
			return refuse(procurement.InsufficientFunds, text)
		case strings.HasPrefix(first, "country not exists"), strings.HasPrefix(first, "set existed ["), strings.HasPrefix(first, "set exists ["):
			return refuse(procurement.Invalid, text)
		case unclear == procurement.Invalid && strings.Contains(first, "stock"):
			return refuse(procurement.OutOfStock, text) // unverified: the words are not documented
		}
	}
	return refuse(unclear, text)
}

// proxySellerMoney is an amount of dollars: a number, or a text that is one,
// rounded to millionths because the seller computes in binary fractions.
type proxySellerMoney domain.Money

// UnmarshalJSON refuses everything that is not a number within reason.
func (m *proxySellerMoney) UnmarshalJSON(text []byte) error {
	var n json.Number
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	if len(n) > 40 || strings.ContainsAny(string(n), "eE/") {
		return domain.ErrMoney
	}
	amount, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return domain.ErrMoney
	}
	parsed, err := domain.ParseMoney(amount.FloatString(6))
	*m = proxySellerMoney(parsed)
	return err
}

// proxySellerBytes is a number of bytes, which comes as a text.
type proxySellerBytes int64

// UnmarshalJSON takes a text or a number, not below 0.
func (b *proxySellerBytes) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	*b = proxySellerBytes(n)
	return err
}

// proxySellerDay reads "dd.mm.yyyy", with or without a time, as the beginning of
// that day in UTC. Whether the day itself is still paid for is unverified, so this
// is the earliest reading.
func proxySellerDay(s string) (time.Time, error) {
	day, _, _ := strings.Cut(s, " ")
	return time.Parse("02.01.2006", day)
}
