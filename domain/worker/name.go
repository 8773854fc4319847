// Package worker holds the rules of workers: sticky identities of their own inside one dynamic
// session, named in the proxy user name.
package worker

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Grammar is the form of a proxy user name with words behind its base.
const Grammar = "<base>[-country-<cc>[-city-<city>]](-session-<name>[-ttl-<n>(s|m|h)][-strict] | -rotate)"

// The bounds of a user name's words.
const (
	MaxName = 32 // bytes of a worker's name
	MinTTL  = 10 * time.Second
	MaxTTL  = 24 * time.Hour

	maxCity  = 64  // bytes
	maxWords = 255 // bytes of all words, as many as SOCKS5 can carry
)

// Parameters are what a user name asks for behind its base. Without a Name each connection gets
// another exit.
type Parameters struct {
	Country string // ISO 3166-1 alpha-2, upper case; empty: as the session was bought
	City    string // as it was written; empty: as the session was bought
	Name    string
	TTL     time.Duration // 0: left out
	Strict  bool
}

// ParameterError is what is wrong with one word of a user name.
type ParameterError struct {
	Word  string // printable ASCII
	Issue string
}

// Error names the word and what is wrong with it.
func (e *ParameterError) Error() string { return "the word " + e.Word + " in the user name " + e.Issue }

// HowToFix returns the error together with the grammar.
func (e *ParameterError) HowToFix() string { return e.Error() + "; the form is " + Grammar }

// shownWord bounds a word in an error.
const shownWord = 40

func wrong(word, issue string) *ParameterError {
	cut := word[:min(len(word), shownWord)]
	return &ParameterError{Word: strconv.QuoteToASCII(cut), Issue: issue}
}

// SplitUserName returns the base of a user name and the words behind it, which begin with a hyphen.
// Parameters are empty if there are none.
func SplitUserName(user string) (base, words string) {
	if i := strings.IndexByte(user, '-'); i >= 0 {
		return user[:i], user[i:]
	}
	return user, ""
}

// The words, in their order.
const (
	none = iota
	country
	city
	named
	rotated
	ttl
	strict
)

var places = map[string]int{"country": country, "city": city, "session": named, "rotate": rotated, "ttl": ttl,
	"strict": strict}

// Parse takes the words apart that SplitUserName returned. The error is a *ParameterError.
func Parse(words string) (w Parameters, err error) {
	if len(words) > maxWords || words == "" {
		return Parameters{}, wrong(words, "is not 1 to 255 bytes of words")
	}
	parts := strings.Split(words[1:], "-")
	last := none
	for i := 0; i < len(parts); i++ {
		word := parts[i]
		at := places[strings.ToLower(word)]
		if issue := misplaced(at, last); issue != "" {
			return Parameters{}, wrong(word, issue)
		}
		value := ""
		if at != rotated && at != strict {
			if i++; i == len(parts) {
				return Parameters{}, wrong(word, "has no value")
			}
			value = parts[i]
		}
		if issue := w.set(at, value); issue != "" {
			return Parameters{}, wrong(word+"-"+value, issue)
		}
		last = at
	}
	return w, nil
}

// misplaced returns what is wrong with a word behind the last one; empty if nothing is.
func misplaced(at, last int) string {
	switch {
	case at == none:
		return "is unknown"
	case at == last || at < last && last != rotated:
		return "is repeated or out of order"
	case at == city && last != country:
		return "needs the word country in front of it"
	case last == rotated, at == rotated && last == named:
		return "cannot be combined with rotate"
	case at == rotated && last > named, at > rotated && last < named:
		return "needs the word session in front of it"
	}
	return ""
}

// set stores one word. It returns what is wrong with its value.
func (p *Parameters) set(at int, value string) string {
	switch at {
	case country:
		if len(value) != 2 || !allBytes(value, letter) {
			return "is not a country: two letters of ISO 3166-1 are"
		}
		p.Country = strings.ToUpper(value)
	case city:
		if value == "" || len(value) > maxCity || !allBytes(value, nameByte) {
			return "is not a city: letters, digits and _ are"
		}
		p.City = strings.ToLower(value)
	case named:
		if !IsName(value) {
			return "is not a name of a worker: 1 to 32 letters, digits and _ are"
		}
		p.Name = value
	case ttl:
		d, ok := parseTTL(value)
		if !ok || d < MinTTL || d > MaxTTL {
			return "is not a time from 10s to 24h in s, m or h"
		}
		p.TTL = d
	case strict:
		p.Strict = true
	}
	return ""
}

// IsName reports whether a text can be the name of a worker.
func IsName(text string) bool { return text != "" && len(text) <= MaxName && allBytes(text, nameByte) }

// parseTTL parses a count and its unit. It is false for another text.
func parseTTL(text string) (time.Duration, bool) {
	if len(text) < 2 || len(text) > 6 || !allBytes(text[:len(text)-1], digit) {
		return 0, false
	}
	n, _ := strconv.Atoi(text[:len(text)-1]) // at most five digits
	switch text[len(text)-1] {
	case 's', 'S':
		return time.Duration(n) * time.Second, true
	case 'm', 'M':
		return time.Duration(n) * time.Minute, true
	case 'h', 'H':
		return time.Duration(n) * time.Hour, true
	}
	return 0, false
}

// allBytes reports whether all bytes of a text are of a kind.
func allBytes(text string, kind func(byte) bool) bool {
	for i := range len(text) {
		if !kind(text[i]) {
			return false
		}
	}
	return true
}

func digit(c byte) bool    { return c >= '0' && c <= '9' }
func letter(c byte) bool   { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func nameByte(c byte) bool { return digit(c) || letter(c) || c == '_' }

// CompareNames orders names as people count: w2 comes before w10.
func CompareNames(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		n, m := digits(x), digits(y)
		if n == 0 || m == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		i, j := strings.TrimLeft(x[:n], "0"), strings.TrimLeft(y[:m], "0")
		if c := cmp.Or(cmp.Compare(len(i), len(j)), strings.Compare(i, j)); c != 0 {
			return c
		}
		x, y = x[n:], y[m:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits returns how many digits a text begins with.
func digits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }
