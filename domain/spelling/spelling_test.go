package spelling_test

import (
	"testing"

	"agentproxy/domain/spelling"
)

func TestNearMiss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, known string
		want        bool
	}{
		{"contry", "country", true},
		{"ccountry", "country", true},
		{"countri", "country", true},
		{"Country", "country", true},
		{"max_cots", "max_cost", true},
		{"dryrun", "dry_run", true},
		{"countryy", "country", true},
		{"", "a", true},
		{"ab", "ba", true},
		{"", "", false},
		{"country", "country", false},
		{"cuontyr", "country", false},
		{"COUNTRY", "country", false},
		{"cntry", "country", false},
		{"abc", "cba", false},
		{"abcd", "badc", false},
	} {
		if got := spelling.NearMiss(c.name, c.known); got != c.want {
			t.Errorf("NearMiss(%q, %q) = %v", c.name, c.known, got)
		}
		if spelling.NearMiss(c.known, c.name) != c.want || spelling.NearMiss([]byte(c.name), c.known) != c.want {
			t.Errorf("NearMiss of %q and %q depends on the order or the type", c.name, c.known)
		}
	}
}

func TestMeant(t *testing.T) {
	t.Parallel()
	known := []string{"max_cost", "dry_run", "cost", "type"}
	for name, want := range map[string]string{
		"maxCost": "max_cost", "Max-Cost": "max_cost", "MAX_COST": "max_cost", "maxcots": "max_cost", "max_costs": "max_cost",
		"dryRun": "dry_run", "dryruns": "dry_run", "Type": "type", "costs": "cost", "COST": "cost",
		"amount": "", "": "", "max": "", "run": "",
	} {
		if got := spelling.Meant(name, known); got != want {
			t.Errorf("Meant(%q) = %q, want %q", name, got, want)
		}
	}
}

// A near miss is a distance of 1, or a transposition, whose distance is 2.
func FuzzNearMiss(f *testing.F) {
	f.Add("contry", "country")
	f.Add("ba", "ab")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)*len(b) > 1e6 {
			return
		}
		near, distance := spelling.NearMiss(a, b), spelling.Distance(a, b)
		if distance == 1 && !near || near && (distance == 0 || distance > 2) || near && distance == 2 && len(a) != len(b) {
			t.Errorf("NearMiss(%q, %q) = %v at distance %d", a, b, near, distance)
		}
	})
}
