package country_test

import (
	"slices"
	"strings"
	"testing"

	"agentproxy/domain/country"
)

// The officially assigned codes of ISO 3166-1 alpha-2.
const assigned = `
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR
GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP
KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT
MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW
SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ
UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`

func TestCountriesAreThoseOfISO3166(t *testing.T) {
	t.Parallel()
	want := strings.Fields(assigned)
	if len(want) != 249 || !slices.IsSorted(want) {
		t.Fatalf("the test lists %d codes", len(want))
	}
	if !slices.Equal(country.Codes, want) {
		for _, c := range country.Codes {
			if !slices.Contains(want, c) {
				t.Errorf("%s is not assigned", c)
			}
		}
		for _, c := range want {
			if !slices.Contains(country.Codes, c) {
				t.Errorf("%s is missing", c)
			}
		}
	}
}

func TestCountryName(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, code := range country.Codes {
		name := country.Name(code)
		if name == code || len(name) < 4 || strings.Contains(name, "nknown") || seen[name] != "" {
			t.Errorf("%s is called %q, as is %q", code, name, seen[name])
		}
		seen[name] = code
	}
	for code, want := range map[string]string{
		"US": "United States", "de": "Germany", "GB": "United Kingdom", "KR": "South Korea", "CI": "Côte d'Ivoire",
		"NA": "Namibia", "XK": "XK", "YU": "YU", "zz": "ZZ", "Germany": "GERMANY", "": "",
	} {
		if got := country.Name(code); got != want {
			t.Errorf("%q is called %q, want %q", code, got, want)
		}
	}
}
