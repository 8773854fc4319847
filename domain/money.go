package domain

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Money is an amount of US dollars in millionths (micro-dollars), which is also
// the smallest unit of USDT. It is exact: no binary floating point inside.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000

// Currency is the only currency of the service (ISO 4217).
const Currency = "USD"

// ErrMoney is returned for a text that is not an amount: not a decimal number,
// more than six decimals, or too large for an int64 of micro-dollars.
var ErrMoney = errors.New("not an amount with at most 6 decimals")

// ParseMoney parses a decimal number such as "12", "-0.50" or "1e2". It returns
// ErrMoney for more than six decimals and for amounts above about 9.2e12
// dollars.
func ParseMoney(s string) (Money, error) {
	n, err := ParseDecimal(s, 6)
	if err != nil {
		return 0, ErrMoney
	}
	return Money(n), nil
}

// MustMoney is like ParseMoney for constants. It panics on an error.
func MustMoney(s string) Money {
	m, err := ParseMoney(s)
	if err != nil {
		panic("domain: " + s + " is not an amount")
	}
	return m
}

// String returns the shortest exact decimal form, such as "9.75" or
// "-0.000001".
func (m Money) String() string { return FormatDecimal(int64(m), 6) }

// ErrDecimal is returned for a text that is not a decimal number of the
// required precision.
var ErrDecimal = errors.New("not a decimal number in range")

// ParseDecimal parses a JSON number (RFC 8259, section 6) as an integer of
// 10^-places. Digits beyond places must be zero.
func ParseDecimal(s string, places int) (int64, error) {
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e > 30 || e < -30 {
			return 0, ErrDecimal
		}
		mantissa, exponent = s[:i], e
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, frac, _ := strings.Cut(digits, ".")
	if whole == "" || len(whole)+len(frac) > 60 || strings.Trim(whole+frac, "0123456789") != "" {
		return 0, ErrDecimal
	}
	shift := places + exponent - len(frac)
	n, _ := new(big.Int).SetString(whole+frac, 10)
	ten := big.NewInt(10)
	if shift >= 0 {
		n.Mul(n, ten.Exp(ten, big.NewInt(int64(shift)), nil))
	} else {
		rest := new(big.Int)
		n.QuoRem(n, ten.Exp(ten, big.NewInt(int64(-shift)), nil), rest)
		if rest.Sign() != 0 {
			return 0, ErrDecimal
		}
	}
	if negative {
		n.Neg(n)
	}
	if !n.IsInt64() {
		return 0, ErrDecimal
	}
	return n.Int64(), nil
}

// FormatDecimal returns n units of 10^-places as a decimal number without
// trailing zeros.
func FormatDecimal(n int64, places int) string {
	return string(AppendDecimal(make([]byte, 0, 24), n, places))
}

// AppendDecimal appends the result of FormatDecimal to b.
func AppendDecimal(b []byte, n int64, places int) []byte {
	u := uint64(n)
	if n < 0 {
		b = append(b, '-')
		u = -u
	}
	unit := uint64(math.Pow10(places))
	b = strconv.AppendUint(b, u/unit, 10)
	frac := u % unit
	if frac == 0 {
		return b
	}
	b = append(b, '.')
	for frac > 0 {
		unit /= 10
		b = append(b, byte('0'+frac/unit))
		frac %= unit
	}
	return b
}

// MulDiv returns a*b/c of non-negative numbers, multiplied in 128 bits and rounded down. A result
// above int64 is clamped to math.MaxInt64, which no balance can pay.
func MulDiv(a, b, c int64) int64 { return mulDiv(a, b, c, 0) }

// MulDivUp is like MulDiv, rounded up.
func MulDivUp(a, b, c int64) int64 { return mulDiv(a, b, c, c-1) }

// mulDiv returns (a*b+add)/c.
func mulDiv(a, b, c, add int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	lo, carry := bits.Add64(lo, uint64(add), 0)
	hi += carry
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}
