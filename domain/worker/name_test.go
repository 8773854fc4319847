package worker_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/worker"
)

func TestWordsAreReadAsTheyStand(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]worker.Parameters{
		"-session-w07":                              {Name: "w07"},
		"-SESSION-W07_x":                            {Name: "W07_x"},
		"-session-strict-strict":                    {Name: "strict", Strict: true},
		"-session-a-ttl-10s":                        {Name: "a", TTL: 10 * time.Second},
		"-session-a-TTL-24H-Strict":                 {Name: "a", TTL: 24 * time.Hour, Strict: true},
		"-session-a-ttl-1440m":                      {Name: "a", TTL: 24 * time.Hour},
		"-rotate":                                   {},
		"-country-de":                               {Country: "DE"},
		"-Country-us-City-NewYork":                  {Country: "US", City: "newyork"},
		"-country-us-city-new_york-rotate":          {Country: "US", City: "new_york"},
		"-country-us-city-x-session-a-ttl-90s":      {Country: "US", City: "x", Name: "a", TTL: 90 * time.Second},
		"-session-" + strings.Repeat("x", 32):       {Name: strings.Repeat("x", 32)},
		"-country-us-session-session-ttl-3600s":     {Country: "US", Name: "session", TTL: time.Hour},
		"-country-us-session-w1-ttl-1h-strict":      {Country: "US", Name: "w1", TTL: time.Hour, Strict: true},
		"-country-us-city-session-session-b":        {Country: "US", City: "session", Name: "b"},
		"-session-" + "0" + "-ttl-" + "00010" + "s": {Name: "0", TTL: 10 * time.Second},
	} {
		got, err := worker.Parse(name)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestAWrongWordIsNamed(t *testing.T) {
	t.Parallel()
	for name, word := range map[string]string{
		"-":                                   `""`,
		"-session":                            `"session"`,
		"-session-":                           `"session-"`,
		"-session-a b":                        `"session-a b"`,
		"-session-é":                          `\u00e9`,
		"-session-" + strings.Repeat("x", 33): `"session-xxx`,
		"-session-my-worker":                  `"worker"`,
		"-session-a-session-b":                `"session"`,
		"-session-a-rotate":                   `"rotate"`,
		"-rotate-session-a":                   `"session"`,
		"-rotate-rotate":                      `"rotate"`,
		"-rotate-strict":                      `"strict"`,
		"-strict":                             `"strict"`,
		"-ttl-10m":                            `"ttl"`,
		"-country-us-ttl-10m":                 `"ttl"`,
		"-session-a-strict-ttl-10m":           `"ttl"`,
		"-session-a-strict-strict":            `"strict"`,
		"-session-a-country-us":               `"country"`,
		"-city-newyork":                       `"city"`,
		"-city-newyork-country-us":            `"city"`,
		"-country-us-country-us":              `"country"`,
		"-country-usa":                        `"country-usa"`,
		"-country-u1":                         `"country-u1"`,
		"-country-us-city-":                   `"city-"`,
		"-session-a-ttl-9s":                   `"ttl-9s"`,
		"-session-a-ttl-25h":                  `"ttl-25h"`,
		"-session-a-ttl-10":                   `"ttl-10"`,
		"-session-a-ttl-1.5h":                 `"ttl-1.5h"`,
		"-session-a-ttl-99999999999999999h":   `"ttl-999`,
		"-sessionn-a":                         `"sessionn"`,
		"-state-ny":                           `"state"`,
		"--session-a":                         `""`,
		"-session-a-":                         `""`,
	} {
		_, err := worker.Parse(name)
		bad, ok := errors.AsType[*worker.ParameterError](err)
		if !ok {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if fix := bad.HowToFix(); !strings.Contains(fix, word) || !strings.Contains(fix, worker.Grammar) {
			t.Errorf("%s: %s does not name %s and the grammar", name, fix, word)
		}
	}
}

func TestTheBaseEndsBeforeTheFirstHyphen(t *testing.T) {
	t.Parallel()
	for user, want := range map[string][2]string{
		"base": {"base", ""}, "base-session-a": {"base", "-session-a"}, "-a": {"", "-a"}, "": {"", ""}, "base-": {"base", "-"},
	} {
		if base, words := worker.SplitUserName(user); base != want[0] || words != want[1] {
			t.Errorf("%s: %q and %q", user, base, words)
		}
	}
}

// format writes what Parse has read.
func format(w worker.Parameters) string {
	var b strings.Builder
	if w.Country != "" {
		b.WriteString("-country-" + w.Country)
	}
	if w.City != "" {
		b.WriteString("-city-" + w.City)
	}
	if w.Name == "" {
		return b.String() + "-rotate"
	}
	b.WriteString("-session-" + w.Name)
	if w.TTL > 0 {
		b.WriteString("-ttl-" + strings.TrimSuffix(strings.TrimSuffix(w.TTL.String(), "0s"), "0m"))
	}
	if w.Strict {
		b.WriteString("-strict")
	}
	return b.String()
}

// held fails unless words are read within their bounds and mean the same when they are written again,
// or are refused with a printable reason.
func held(t *testing.T, text string) (valid bool) {
	t.Helper()
	w, err := worker.Parse(text)
	if err != nil {
		bad, ok := errors.AsType[*worker.ParameterError](err)
		if !ok || w != (worker.Parameters{}) {
			t.Fatalf("%q: %+v, %v", text, w, err)
		}
		for _, c := range []byte(bad.HowToFix()) {
			if c < ' ' || c > '~' {
				t.Fatalf("%q: %q is not printable", text, bad.HowToFix())
			}
		}
		return false
	}
	if w.Name != "" && !worker.IsName(w.Name) || w.TTL != 0 && (w.TTL < worker.MinTTL || w.TTL > worker.MaxTTL) ||
		w.City != "" && w.Country == "" || w.Name == "" && (w.TTL != 0 || w.Strict) {
		t.Fatalf("%q: %+v", text, w)
	}
	if w.TTL%time.Hour == 0 {
		if again, err := worker.Parse(format(w)); err != nil || again != w {
			t.Fatalf("%q: %+v is read as %+v, %v", text, w, again, err)
		}
	}
	return true
}

// TestGeneratedNames reads 10,000 names of words in every order, with every kind of value.
func TestGeneratedNames(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"country", "city", "session", "rotate", "ttl", "strict", "de", "US", "newyork", "w07", "10m", "24h", "9s",
		"", "x", "\x00", "é", "%2d", ":", "a@b", strings.Repeat("9", 40), "Session", "_", "1s"}
	forms := []string{"-country-us", "-city-berlin", "-session-a", "-ttl-1h", "-strict", "-rotate", "-session-b_1"}
	valid := 0
	for range 10_000 {
		var b strings.Builder
		for range r.IntN(7) {
			if r.IntN(3) > 0 {
				b.WriteString(forms[r.IntN(len(forms))])
			} else {
				b.WriteString("-" + pieces[r.IntN(len(pieces))])
			}
		}
		if held(t, b.String()) {
			valid++
		}
	}
	if valid < 500 {
		t.Errorf("%d of 10000 names are valid: too few", valid)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-country-us-city-newyork-session-w07-ttl-10m-strict")
	f.Add("-rotate")
	f.Fuzz(func(t *testing.T, words string) { held(t, words) })
}

func TestNamesAreOrderedAsPeopleCount(t *testing.T) {
	t.Parallel()
	want := []string{"W1", "a", "w", "w01", "w1", "w1a", "w2", "w2_9x1", "w2_10", "w10", "w100", "x"}
	got := slices.Clone(want)
	for range 20 {
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, worker.CompareNames)
		if !slices.Equal(got, want) {
			t.Fatalf("ordered %v, want %v", got, want)
		}
	}
}
