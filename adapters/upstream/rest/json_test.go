package rest_test

import (
	"encoding/json"
	"testing"

	"agentproxy/adapters/upstream/rest"
)

func TestNumbersAreReadInEveryFormAndNoOther(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{`2.40`: 2_400_000, `"2.40"`: 2_400_000, `3`: 3_000_000, `0.30000000000000004`: 300_000,
		`2.5e1`: 25_000_000, `-1.5`: -1_500_000} {
		var f rest.Number
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if n, ok := f.Decimal(6, rest.Nearest); !ok || n != want {
			t.Errorf("%s is %d %v, want %d", text, n, ok, want)
		}
	}
	for text, want := range map[string][3]int64{`1.0000004`: {1_000_000, 1_000_001, 1_000_000}, `0.29999999999999999`: {299_999, 300_000, 300_000}} {
		f := rest.Number(text)
		for how, n := range want {
			if got, _ := f.Decimal(6, rest.Rounding(how)); got != n {
				t.Errorf("%s rounded by %d is %d, want %d", text, how, got, n)
			}
		}
	}
	for _, text := range []string{`{}`, `[]`, `"1e999999999"`, `1e999`, `"12 USD"`, `true`, `"0x10"`, `"1,5"`} {
		var f rest.Number
		if err := json.Unmarshal([]byte(text), &f); err == nil {
			t.Errorf("%s is read as %q", text, f)
		}
	}
	for _, text := range []string{`null`, `""`} {
		var f rest.Number
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Error(err)
		}
		if _, ok := f.Decimal(6, rest.Down); ok {
			t.Errorf("%s is a number", text)
		}
	}
}
