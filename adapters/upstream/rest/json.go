package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentproxy/domain"
)

// ErrShape is returned by decoders for an answer whose shape is not documented.
var ErrShape = errors.New("not of a shape that is known")

// Number is a number that a seller writes as a JSON number, as a text or as null.
// It is empty for null and for an empty text.
type Number string

// numberForm bounds the exponent, so that a short text cannot become a huge number.
var numberForm = regexp.MustCompile(`^-?[0-9]{1,18}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$`)

// UnmarshalJSON returns ErrShape for anything that is not a number.
func (n *Number) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == "null" {
		*n = ""
		return nil
	}
	if b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	if text != "" && !numberForm.MatchString(text) {
		return ErrShape
	}
	*n = Number(text)
	return nil
}

// Rounding states what happens to surplus digits. Sellers print binary floating
// point numbers, in which 0.1+0.2 is 0.30000000000000004.
type Rounding uint8

// The directions of rounding.
const (
	Down Rounding = iota
	Up
	Nearest
)

// Decimal returns the number in units of 10^-places. It returns false if the number
// is empty or too large.
func (n Number) Decimal(places int, how Rounding) (int64, bool) {
	r, ok := new(big.Rat).SetString(string(n))
	if n == "" || !ok {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)))
	if how == Nearest {
		r.Add(r, big.NewRat(1, 2))
	}
	i, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if how == Up && rest.Sign() != 0 {
		i.Add(i, big.NewInt(1))
	}
	return i.Int64(), i.IsInt64()
}

// Cost returns an amount of dollars to pay, rounded up. It returns false if the
// number is empty or too large.
func (n Number) Cost() (domain.Money, bool) {
	i, ok := n.Decimal(6, Up)
	return domain.Money(i), ok
}

// Positive returns the number if it is an integer above 0.
func (n Number) Positive() (int64, bool) {
	i, err := strconv.ParseInt(string(n), 10, 64)
	return i, err == nil && i > 0
}

// Unwrapped is a value that a seller wraps in "data" at times.
type Unwrapped[T any] struct{ Value T }

// UnmarshalJSON decodes the value and calls its Check method, if it has one, so
// that an answer without its essential fields is not taken for a success.
func (u *Unwrapped[T]) UnmarshalJSON(b []byte) error {
	var outer struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(b, &outer) == nil && len(outer.Data) > 0 && string(outer.Data) != "null" {
		b = outer.Data
	}
	if err := json.Unmarshal(b, &u.Value); err != nil {
		return err
	}
	if c, ok := any(&u.Value).(interface{ Check() error }); ok {
		return c.Check()
	}
	return nil
}

// passwordLike matches passwords that the adapters derive from keys of orders.
var passwordLike = regexp.MustCompile(`[a-z2-7]{26,}`)

// RefusalText returns the messages of a refusal on one line, without what may be a
// password that the seller repeats. It is empty for a body of another shape.
func RefusalText(body []byte) string {
	var in struct {
		Message any            `json:"message"`
		Error   any            `json:"error"`
		Errors  map[string]any `json:"errors"`
	}
	_ = json.Unmarshal(body, &in)
	var parts []string
	for _, v := range []any{in.Message, in.Error} {
		if s, ok := v.(string); ok && s != "" {
			parts = append(parts, s)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(in.Errors)) {
		parts = append(parts, fmt.Sprintf("%s: %v", field, in.Errors[field]))
	}
	return passwordLike.ReplaceAllString(OneLine(strings.Join(parts, "; ")), "[hidden]")
}
