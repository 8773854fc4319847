package upstream

import (
	"encoding/json"
	"testing"
)

func TestFiguresAreReadInEveryFormAndNoOther(t *testing.T) {
	for text, want := range map[string]int64{`2.40`: 2_400_000, `"2.40"`: 2_400_000, `3`: 3_000_000, `0.30000000000000004`: 300_000,
		`2.5e1`: 25_000_000, `-1.5`: -1_500_000} {
		var f figure
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if n, ok := f.decimal(6, nearest); !ok || n != want {
			t.Errorf("%s is %d %v, want %d", text, n, ok, want)
		}
	}
	for text, want := range map[string][3]int64{`1.0000004`: {1_000_000, 1_000_001, 1_000_000}, `0.29999999999999999`: {299_999, 300_000, 300_000}} {
		f := figure(text)
		for how, n := range want {
			if got, _ := f.decimal(6, rounding(how)); got != n {
				t.Errorf("%s rounded by %d is %d, want %d", text, how, got, n)
			}
		}
	}
	for _, text := range []string{`{}`, `[]`, `"1e999999999"`, `1e999`, `"12 USD"`, `true`, `"0x10"`, `"1,5"`} {
		var f figure
		if err := json.Unmarshal([]byte(text), &f); err == nil {
			t.Errorf("%s is read as %q", text, f)
		}
	}
	for _, text := range []string{`null`, `""`} {
		var f figure
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Error(err)
		}
		if _, ok := f.decimal(6, down); ok {
			t.Errorf("%s is a number", text)
		}
	}
}

func TestNamesOfPlacesAreUnderstood(t *testing.T) {
	for name, want := range map[string]string{"United States": "US", "USA": "US", "United Kingdom": "GB", "South Korea": "KR", "Turkey": "TR",
		"Türkiye": "TR", "Czech Republic": "CZ", "Hong Kong": "HK", "Vietnam": "VN", "Germany": "DE", "Atlantis": ""} {
		if got := countryOf(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"New York (New York)": "newyork", "London (England)": "london", "Paris, FR": "paris"} {
		if got := citySlug(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if len(countryCodes()) < len(Countries) {
		t.Errorf("%d names for %d countries", len(countryCodes()), len(Countries))
	}
}
