package exit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"agentproxy/domain/country"
)

// MaxRanges bounds the networks of all files together.
const MaxRanges = 1_000_000

// maxText is the greatest length of a value in characters.
const maxText = 100

// Ranges has facts about networks. The zero value has none.
type Ranges struct {
	nets map[network]*Known
	bits [2][]int // lengths of the prefixes for IPv4 and IPv6, the longest first
}

// network is a prefix as a key of a map. It has no padding, so that hashing it is one call.
type network struct{ high, low, bits uint64 }

func networkOf(p netip.Prefix) network {
	b := p.Addr().As16()
	n := network{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:]), uint64(p.Bits())}
	if p.Addr().Is4() {
		n.bits += 96
	}
	return n
}

// Len returns how many networks have facts.
func (r *Ranges) Len() int { return len(r.nets) }

// Lookup returns the facts of the networks that an address is in, those of the smallest network first.
func (r *Ranges) Lookup(addr netip.Addr) (k Known) {
	addr = addr.Unmap()
	for _, bits := range r.bits[family(addr)] {
		p, err := addr.Prefix(bits)
		if err != nil {
			return k
		}
		if found := r.nets[networkOf(p)]; found != nil {
			k.Add(*found)
		}
	}
	k.Disputed = false // what a smaller network has is an exception from a larger one
	return k
}

// family returns 0 for IPv4 and 1 for IPv6.
func family(addr netip.Addr) int {
	if addr.Is4() {
		return 0
	}
	return 1
}

// RangesBuilder collects lines of files. The zero value is ready for use.
type RangesBuilder struct {
	nets   map[network]*Known
	seen   [2][129]bool      // lengths of prefixes, for IPv4 and IPv6
	values map[string]*Known // by their text, so that a million lines of one network cost a pointer each
}

// Line adds a line of a file: a network in CIDR notation and at least one name=value, separated by spaces. The
// names are country, region, city, timezone, asn, as_name, network_type and listed, each at most once but listed; a
// value with spaces is in double quotes. A network is named at most once.
func (b *RangesBuilder) Line(text string) error {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	prefix, err := parsePrefix(name)
	if err != nil {
		return err
	}
	rest = strings.TrimSpace(rest)
	known := b.values[rest]
	if known == nil {
		k, err := parseValues(rest)
		if err != nil {
			return err
		}
		known = &k
	}
	key := networkOf(prefix)
	switch {
	case b.nets[key] != nil:
		return fmt.Errorf("%s is there twice", name)
	case b.nets == nil:
		b.nets, b.values = map[network]*Known{}, map[string]*Known{}
	}
	b.nets[key] = known
	b.seen[family(prefix.Addr())][prefix.Bits()] = true
	if b.values[rest] == nil {
		b.values[strings.Clone(rest)] = known
	}
	return nil
}

// Has returns the facts that some network has.
func (b *RangesBuilder) Has() (has Fields) {
	for _, k := range b.values {
		has = has.And(Fields{Country: k.Country != "", Network: k.Network != "", ASN: k.ASN != 0, Listed: k.Listed != nil})
	}
	return has
}

// Ranges returns what was collected.
func (b *RangesBuilder) Ranges() *Ranges {
	r := &Ranges{nets: b.nets}
	for f := range b.seen {
		for bits := len(b.seen[f]) - 1; bits >= 0; bits-- {
			if b.seen[f][bits] {
				r.bits[f] = append(r.bits[f], bits)
			}
		}
	}
	return r
}

// parsePrefix returns a network that has no bits set beside its prefix.
func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return p, fmt.Errorf("%q is not a network such as 192.0.2.0/24", short(text))
	case p != p.Masked():
		return p, fmt.Errorf("%s has bits beyond its prefix; the network is %s", p, p.Masked())
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%s is an IPv4 network in IPv6 notation; write it as IPv4", p)
	}
	return p, nil
}

// parseValues returns the facts of a line behind its network.
func parseValues(text string) (k Known, err error) {
	if text == "" {
		return k, errors.New("has a network and no facts; write name=value after it")
	}
	given := map[string]bool{}
	for text != "" {
		name, rest, found := strings.Cut(text, "=")
		if !found {
			return k, fmt.Errorf("%q is not name=value", short(text))
		}
		value, rest, err := cutValue(rest)
		if err != nil {
			return k, fmt.Errorf("%s: %w", short(name), err)
		}
		if given[name] && name != "listed" {
			return k, fmt.Errorf("%s is there twice", name)
		}
		given[name], text = true, strings.TrimLeft(rest, " \t")
		if err := k.set(name, value); err != nil {
			return k, err
		}
	}
	return k, nil
}

// cutValue returns a value, which may be in double quotes, and what follows it.
func cutValue(text string) (value, rest string, err error) {
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		value, rest, ok = strings.Cut(quoted, `"`)
		if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			return "", "", errors.New("the quotes are not closed")
		}
	} else if end := strings.IndexAny(text, " \t"); end >= 0 {
		value, rest = text[:end], text[end:]
	} else {
		value = text
	}
	switch {
	case value == "":
		return "", "", errors.New("has no value")
	case len([]rune(value)) > maxText:
		return "", "", fmt.Errorf("is longer than %d characters", maxText)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", "", errors.New("has control characters")
	}
	return value, rest, nil
}

// The form of names of timezones and of labels of lists.
var (
	timezoneForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)
	labelForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,31}$`)
)

// IsLabel reports whether a text can be the label of a list: 1 to 32 of a-z, 0-9, _, . and -, which begin with a
// letter or digit.
func IsLabel(text string) bool { return labelForm.MatchString(text) }

// ParseNetwork returns the kind of network that a text names.
func ParseNetwork(text string) (Network, error) {
	if n := Network(text); slices.Contains(Networks, n) {
		return n, nil
	}
	return "", fmt.Errorf("%q is not one of residential, mobile, isp and hosting", short(text))
}

// set sets a fact by its name.
func (k *Known) set(name, value string) (err error) {
	switch name {
	case "country":
		if k.Country = value; !country.Known(value) {
			err = fmt.Errorf("%q is not an ISO 3166-1 alpha-2 code in upper case", short(value))
		}
	case "region":
		k.Region = value
	case "city":
		k.City = value
	case "timezone":
		if k.Timezone = value; !timezoneForm.MatchString(value) {
			err = fmt.Errorf("%q is not the name of a timezone, such as Europe/Berlin", short(value))
		}
	case "asn":
		var n uint64
		if n, err = strconv.ParseUint(strings.TrimPrefix(value, "AS"), 10, 32); err != nil || n == 0 {
			return fmt.Errorf("%q is not the number of an autonomous system, 1 to 4294967295", short(value))
		}
		k.ASN = uint32(n)
	case "as_name":
		k.ASName = value
	case "network_type":
		k.Network, err = ParseNetwork(value)
	case "listed":
		if !IsLabel(value) {
			return fmt.Errorf("%q is not a label: 1 to 32 of a-z, 0-9, _, . and -", short(value))
		}
		k.Add(Known{Listed: []string{value}})
	default:
		err = fmt.Errorf("%q is not the name of a fact; the names are country, region, city, timezone, asn, as_name, "+
			"network_type and listed", short(name))
	}
	return err
}

// short returns the beginning of a text, for messages.
func short(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return text
}
