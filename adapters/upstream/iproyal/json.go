package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
)

// errShape is an answer of a shape that nobody described.
var errShape = errors.New("not of a shape that is known")

// figure is a number that a seller writes as a JSON number, as a text or as null,
// which is the empty one.
type figure string

// figureForm bounds what is read, so that no exponent makes a number huge.
var figureForm = regexp.MustCompile(`^-?[0-9]{1,18}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$`)

func (f *figure) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == "null" {
		*f = ""
		return nil
	}
	if b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	if text != "" && !figureForm.MatchString(text) {
		return errShape
	}
	*f = figure(text)
	return nil
}

// How a figure of too many digits is rounded. Sellers print binary floating
// point: 0.1+0.2 is 0.30000000000000004 there.
type rounding uint8

const (
	down rounding = iota
	up
	nearest
)

// decimal is the number in units of 10^-places; false when it is not told or too
// large.
func (f figure) decimal(places int, how rounding) (int64, bool) {
	r, ok := new(big.Rat).SetString(string(f))
	if f == "" || !ok {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)))
	if how == nearest {
		r.Add(r, big.NewRat(1, 2))
	}
	n, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if how == up && rest.Sign() != 0 {
		n.Add(n, big.NewInt(1))
	}
	return n.Int64(), n.IsInt64()
}

// cost is an amount of dollars that is paid, rounded up.
func (f figure) cost() (domain.Money, bool) {
	n, ok := f.decimal(6, up)
	return domain.Money(n), ok
}

// whole is a number that has to be a positive integer.
func (f figure) whole() (int64, bool) {
	n, err := strconv.ParseInt(string(f), 10, 64)
	return n, err == nil && n > 0
}

// inData is a value that a seller wraps in "data" at times. A value that can be
// checked is, so that a call whose answer lacks what matters has not succeeded.
type inData[T any] struct{ V T }

func (d *inData[T]) UnmarshalJSON(b []byte) error {
	var outer struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(b, &outer) == nil && len(outer.Data) > 0 && string(outer.Data) != "null" {
		b = outer.Data
	}
	if err := json.Unmarshal(b, &d.V); err != nil {
		return err
	}
	if c, ok := any(&d.V).(interface{ check() error }); ok {
		return c.check()
	}
	return nil
}

// paged is one page of a list.
type paged[T any] struct {
	Data []T
	Last int // page; 0: not told
}

func (l *paged[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, &l.Data)
	}
	var outer struct {
		Data *[]T `json:"data"`
		Meta struct {
			Last int `json:"last_page"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(b, &outer); err != nil {
		return err
	}
	if outer.Data == nil {
		return errShape
	}
	l.Data, l.Last = *outer.Data, outer.Meta.Last
	return nil
}

// iproyalExplain reads a refusal of what was asked for: 422 with a message and
// errors by field. Which words mean an empty stock or an empty account is
// unverified; the caller looks into both where the words tell nothing.
func iproyalExplain(status int, _ http.Header, body []byte) *procurement.Error {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		if status >= 500 && bytes.Contains(bytes.ToLower(body), []byte("password")) {
			return procurement.Refuse(procurement.TimedOut, "status "+strconv.Itoa(status)) // it repeats the request
		}
		return nil
	}
	words := sellerWords(body)
	class, low := procurement.Invalid, strings.ToLower(words)
	switch {
	case strings.Contains(low, "stock"):
		class = procurement.OutOfStock
	case strings.Contains(low, "balance"), strings.Contains(low, "insufficient"), strings.Contains(low, "funds"),
		strings.Contains(low, "not enough traffic"):
		class = procurement.InsufficientFunds
	}
	return procurement.Refuse(class, strings.TrimSpace("status "+strconv.Itoa(status)+": "+words))
}

// derived is what a password that subUserPassword made looks like.
var derived = regexp.MustCompile(`[a-z2-7]{26,}`)

// sellerWords are the texts of a refusal, without what it may repeat of a
// password. A body of another shape has none.
func sellerWords(body []byte) string {
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
	return derived.ReplaceAllString(plain(strings.Join(parts, "; ")), "[hidden]")
}
