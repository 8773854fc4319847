package iproyal

import (
	"testing"

	"agentproxy/domain/country"
)

func TestNamesOfPlacesAreUnderstood(t *testing.T) {
	t.Parallel()
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
	if len(countryCodes()) < len(country.Codes) {
		t.Errorf("%d names for %d countries", len(countryCodes()), len(country.Codes))
	}
}
