package value

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

// ParseTime parses a time, and returns what is wrong with it.
func ParseTime(text string) (time.Time, string) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 {
		return time.Time{}, "must be a time in RFC 3339"
	}
	return t.UTC(), ""
}

// Decimal is a number of a request: its text, so that no digit is lost. The
// empty text is an absent field; null stays "null", which no rule of the domain
// takes for a number.
type Decimal string

// UnmarshalJSON keeps the text.
func (d *Decimal) UnmarshalJSON(b []byte) error {
	*d = Decimal(b)
	return nil
}

// orNone returns the text, empty for null: of fields that buy nothing.
func (d Decimal) orNone() string {
	if d == "null" {
		return ""
	}
	return string(d)
}

// Given reports whether the field was there and not null.
func (d Decimal) Given() bool { return d != "" && d != "null" }

// Schema describes the type in the document.
func (Decimal) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }

// Integer returns the number as an integer: nil if the field is absent, -1 if it is
// none. The domain has no bound that allows -1.
func (d Decimal) Integer() *int {
	n := d.scaled(0)
	if n == nil {
		return nil
	}
	return new(int(*n))
}

// Bytes returns a number of GB in bytes, as whole does.
func (d Decimal) Bytes() *int64 { return d.scaled(9) }

// Money returns an amount, as whole does.
func (d Decimal) Money() *domain.Money { return (*domain.Money)(d.scaled(6)) }

// Seconds returns a duration, as whole does; null counts as absent.
func (d Decimal) Seconds() *time.Duration {
	n := Decimal(d.orNone()).scaled(0)
	if n == nil {
		return nil
	}
	most := int64(session.MaxInterval/time.Second) + 1 // out of bounds, and far from an overflow
	return new(time.Duration(min(*n, most)) * time.Second)
}

func (d Decimal) scaled(places int) *int64 {
	if d == "" {
		return nil
	}
	n, err := domain.ParseDecimal(string(d), places)
	if err != nil {
		n = -1
	}
	return &n
}

// Limit reads a limit: nil leaves it alone, a nil inside lifts it.
func (d Decimal) Limit(field string) (**domain.Money, error) {
	if d == "" {
		return nil, nil
	}
	to := new(*domain.Money)
	if d == "null" {
		return to, nil
	}
	amount, err := domain.ParseMoney(string(d))
	if err != nil {
		return nil, domain.InvalidField(field, "must be an amount of 0 or more with at most 6 decimals")
	}
	*to = &amount
	return to, nil
}

// Each converts a slice; the result is never nil, so it is never null.
func Each[T, R any](list []T, one func(T) R) []R {
	out := make([]R, len(list))
	for i, v := range list {
		out[i] = one(v)
	}
	return out
}
