package proxyseller

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
)

// envelope is the frame of an answer that explain accepted as a success. Data points
// to the value to decode into.
type envelope struct {
	Data any `json:"data"`
}

// apiError is an entry of errors[], or the whole body of an answer with status 400.
type apiError struct {
	Message string      `json:"message"`
	Code    json.Number `json:"code"` // a number, or a text that is one
}

// undocumented is what is made of an answer that is not documented: of a refusal with an unknown code, and of anything
// that is neither a success nor a refusal. One that is Ambiguous is of calls that are sent once.
type undocumented struct{ refusal, answer procurement.Class }

// The calls of the API by what their undocumented answers prove: those that may be repeated, those that spend money,
// and a request for a replacement, of which a refusal proves that it was not submitted.
var (
	ofWrites = undocumented{procurement.Invalid, procurement.Temporary}
	ofMoney  = undocumented{procurement.Ambiguous, procurement.Ambiguous}
	ofAsking = undocumented{procurement.Conflict, procurement.Ambiguous}
)

// explain classifies the envelope {status, data, errors[]}, whose HTTP status is almost
// always 200. It returns nil for a success, and where the HTTP status decides: 429
// comes from an edge in front of the API before anything is executed; 5xx is
// inconclusive, and so is any other page of the edge after a call that spends money.
func explain(status int, body []byte, u undocumented, hide func(string) string) *procurement.Error {
	refuse := func(c procurement.Class, text string) *procurement.Error {
		// The key is hidden before the text is cut, because half a key is a secret too.
		return procurement.Refuse(c, rest.OneLine(hide(text)))
	}
	unclear, odd := u.refusal, u.answer
	switch {
	case odd == procurement.Ambiguous && status != 429 && (status < 200 || status > 299) && !ofApplication(body):
		// A page of the edge shows nothing of what the application did.
		return refuse(procurement.Ambiguous, "status "+strconv.Itoa(status)+", and the answer is not of the application")
	case status == 400 || status == 422: // outside the envelope, and before anything was done
		var e apiError
		if json.Unmarshal(body, &e) != nil || e.Message == "" {
			return nil
		}
		if f := classify([]apiError{e}, procurement.Invalid, refuse); f.Class != procurement.Ambiguous {
			return f
		}
		return refuse(procurement.Invalid, e.Message)
	case status < 200 || status > 299:
		return nil
	}
	var e struct {
		Status string
		Data   json.RawMessage
		Errors []apiError
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return refuse(odd, shapeReason)
	}
	switch {
	case e.Status == "success" && len(e.Errors) == 0:
		return nil
	case e.Status == "error" && len(e.Errors) > 0:
		return classify(e.Errors, unclear, refuse)
	case e.Status == "error":
		// The fault is a warning among the data.
		var data struct{ Warning string }
		if json.Unmarshal(e.Data, &data) == nil && data.Warning != "" {
			return classify([]apiError{{Message: data.Warning, Code: "0"}}, unclear, refuse)
		}
	}
	return refuse(odd, shapeReason)
}

// ofApplication reports whether a refusal is a JSON object with a status or a message,
// which an edge in front of the application does not send.
func ofApplication(body []byte) bool {
	var e struct{ Status, Message string }
	return json.Unmarshal(body, &e) == nil && e.Status+e.Message != ""
}

// classify maps the errors of an answer to one error. The codes are from the README of
// https://github.com/proxy-seller/userApiGolang ; unlisted ones get the class unclear.
func classify(errs []apiError, unclear procurement.Class,
	refuse func(procurement.Class, string) *procurement.Error) *procurement.Error {
	var texts []string
	access, limited := 0, 0
	for _, e := range errs {
		texts = append(texts, e.Message+" ("+string(e.Code)+")")
		switch e.Code {
		case "2", "3", "503":
			access++
			if strings.Contains(strings.ToLower(e.Message), "limit") {
				limited++
			}
		}
	}
	text, first := strings.Join(texts, ", "), strings.ToLower(errs[0].Message)
	// 503 is a wrong key, an address that is not allowed, or too many requests,
	// which only the text distinguishes. Version 2 sends all three at once: then it may
	// be the key, which only the operator can mend.
	if access > 0 {
		if limited < access {
			return refuse(procurement.Auth, text)
		}
		e := refuse(procurement.RateLimited, text)
		e.RetryAfter = time.Minute // the limit is counted by the minute
		return e
	}
	// Words win over codes, because one code has several meanings.
	switch {
	case slices.ContainsFunc(errs,
		func(e apiError) bool { return strings.Contains(strings.ToLower(e.Message), "insufficient funds") }):
		return refuse(procurement.InsufficientFunds, text)
	case strings.HasPrefix(first, "tarif not found"), strings.HasPrefix(first, "set [ traffic_limit ] less than"):
		// There is no residential tariff, or too little left of it.
		return refuse(procurement.InsufficientFunds, text)
	case strings.HasPrefix(first, "ip not found"):
		return refuse(procurement.NotFound, text)
	case strings.HasPrefix(first, "country not exists"), strings.HasPrefix(first, "set existed ["),
		strings.HasPrefix(first, "set exists ["):
		return refuse(procurement.Invalid, text)
	case unclear != procurement.Ambiguous && strings.Contains(first, "stock"):
		return refuse(procurement.OutOfStock, text) // unverified: the words are not documented
	}
	switch errs[0].Code {
	case "57": // a renewal of this order runs already: perhaps ours
		return refuse(procurement.Ambiguous, text)
	case "13", "14": // the protocol, the purpose
		return refuse(procurement.Invalid, text)
	case "16": // "Insufficient funds on balance"
		return refuse(procurement.InsufficientFunds, text)
	case "29": // order ids that do not exist
		return refuse(procurement.NotFound, text)
	case "35": // "Unknown error"
		if unclear != procurement.Invalid {
			return refuse(procurement.Ambiguous, text)
		}
		return refuse(procurement.Temporary, text)
	case "404":
		return refuse(procurement.NotFound, text)
	}
	return refuse(unclear, text)
}

// amount is an amount of dollars, sent as a number or a text. It is rounded to
// millionths, because the seller computes in binary fractions.
type amount domain.Money

// UnmarshalJSON returns domain.ErrMoney for anything but a decimal number of at most
// 40 characters.
func (a *amount) UnmarshalJSON(text []byte) error {
	var n json.Number
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	if len(n) > 40 || strings.ContainsAny(string(n), "eE/") {
		return domain.ErrMoney
	}
	value, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return domain.ErrMoney
	}
	parsed, err := domain.ParseMoney(value.FloatString(6))
	*a = amount(parsed)
	return err
}

// byteCount is a number of bytes, which the seller sends as a text.
type byteCount int64

// UnmarshalJSON accepts a text or a number that is not below 0.
func (b *byteCount) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	*b = byteCount(n)
	return err
}

// parseDay reads "dd.mm.yyyy", with or without a time, as the beginning of that day in
// UTC. This is the earliest interpretation: whether the day itself is paid for is
// unverified.
func parseDay(s string) (time.Time, error) {
	day, _, _ := strings.Cut(s, " ")
	return time.Parse("02.01.2006", day)
}
