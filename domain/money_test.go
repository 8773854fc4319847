package domain_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/domain"
)

func TestParseMoney(t *testing.T) {
	for text, want := range map[string]domain.Money{
		"0": 0, "-0": 0, "0.000000": 0, "1": 1_000_000, "12.50": 12_500_000, "-0.50": -500_000,
		"0.000001": 1, "1.0000010": 1_000_001, "1e2": 100_000_000, "1E+2": 100_000_000, "15e-1": 1_500_000,
		"1e-6": 1, "0e30": 0, "9223372036854.775807": math.MaxInt64, "-9223372036854.775808": math.MinInt64,
		"100000000000e-11": 1_000_000,
	} {
		if got, err := domain.ParseMoney(text); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-", "+1", ".", ".5", "--1", "1,5", "1_000", "0x10", "1e", "e5", "1e1.5", "1e31", "1e-31", "1e999999999999",
		"NaN", "Infinity", "-Infinity", "1.2.3", " 1", "1 ", "1\n", "１", "0.0000001", "1e-7",
		"9223372036854.775808", "-9223372036854.775809", "1e30", strings.Repeat("9", 61), strings.Repeat("0", 1_000_000),
	} {
		if got, err := domain.ParseMoney(text); !errors.Is(err, domain.ErrMoney) {
			t.Errorf("%.40q is %d, %v, want a refusal", text, got, err)
		}
	}
}

func TestMoneyIsWrittenShort(t *testing.T) {
	for m, want := range map[domain.Money]string{
		0: "0", 1: "0.000001", -1: "-0.000001", 9_750_000: "9.75", -500_000: "-0.5", domain.Dollar: "1",
		math.MaxInt64: "9223372036854.775807", math.MinInt64: "-9223372036854.775808",
	} {
		if got := m.String(); got != want {
			t.Errorf("%d is written %s, want %s", int64(m), got, want)
		}
	}
}

func TestMustMoney(t *testing.T) {
	if got := domain.MustMoney("2.70"); got != 2_700_000 {
		t.Errorf("got %d", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("what is no amount does not panic")
		}
	}()
	domain.MustMoney("two")
}

func TestADecimalIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, places := rapid.Int64().Draw(t, "n"), rapid.IntRange(0, 18).Draw(t, "places")
		text := domain.FormatDecimal(n, places)
		if back, err := domain.ParseDecimal(text, places); err != nil || back != n {
			t.Errorf("%d with %d places is written %s and read as %d, %v", n, places, text, back, err)
		}
		if !json.Valid([]byte(text)) || strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
			t.Errorf("%s is no short JSON number", text)
		}
	})
}

// Whatever the text of a JSON number, the answer is the exact one or a refusal.
func TestParseDecimalIsExact(t *testing.T) {
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		text, places := number.Draw(t, "text"), rapid.IntRange(0, 9).Draw(t, "places")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s is no number", text)
		}
		exact.Mul(exact, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)))
		fits := exact.IsInt() && exact.Num().IsInt64()
		got, err := domain.ParseDecimal(text, places)
		if err == nil && (!fits || got != exact.Num().Int64()) {
			t.Errorf("%s is read as %d, exact is %s", text, got, exact)
		}
		if err != nil && fits && exact.Num().Sign() != 0 && exponent(text) <= 30 {
			t.Errorf("%s is refused, exact is %s", text, exact)
		}
	})
}

// exponent is the size of the exponent that is written in a number.
func exponent(text string) int {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return 0
	}
	n := 0
	for _, r := range strings.TrimLeft(text[i+1:], "+-") {
		n = n*10 + int(r-'0')
	}
	return n
}

// mulDiv returns the function of a rounding.
func mulDiv(up bool) func(a, b, c int64) int64 {
	if up {
		return domain.MulDivUp
	}
	return domain.MulDiv
}

func TestMulDiv(t *testing.T) {
	for _, c := range []struct {
		claim   string
		a, b, c int64
		up      bool
		want    int64
	}{
		{"down", 7, 3, 2, false, 10},
		{"up", 7, 3, 2, true, 11},
		{"what divides is the same both ways", 8, 3, 2, true, 12},
		{"nothing costs nothing", 0, 5, 7, true, 0},
		{"the least is rounded up to one", 1, 1, 1_000_000_000, true, 1},
		{"beyond 64 bits in between", math.MaxInt64, 1000, 1000, false, math.MaxInt64},
		{"beyond 64 bits in the end is clamped", math.MaxInt64, math.MaxInt64, 1, false, math.MaxInt64},
		{"and rounded up too", math.MaxInt64, 3, 2, true, math.MaxInt64},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got := mulDiv(c.up)(c.a, c.b, c.c); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestMulDivIsExact(t *testing.T) {
	whole := rapid.Int64Range(0, math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := whole.Draw(t, "a"), whole.Draw(t, "b"), rapid.Int64Range(1, math.MaxInt64).Draw(t, "c")
		up := rapid.Bool().Draw(t, "up")
		exact, rest := new(big.Int).QuoRem(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), big.NewInt(c), new(big.Int))
		if up && rest.Sign() > 0 {
			exact.Add(exact, big.NewInt(1))
		}
		want := int64(math.MaxInt64)
		if exact.IsInt64() {
			want = exact.Int64()
		}
		if got := mulDiv(up)(a, b, c); got != want {
			t.Errorf("%d*%d/%d, up %v, is %d, want %s", a, b, c, up, got, exact)
		}
	})
}

func BenchmarkParseMoney(b *testing.B) {
	for b.Loop() {
		if _, err := domain.ParseMoney("12.345678"); err != nil {
			b.Fatal(err)
		}
	}
}
