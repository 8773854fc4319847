package configfile

import (
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"agentproxy/adapters/upstream"
	"agentproxy/adapters/upstream/country"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain/catalog"
)

// Bounds of a provider's settings.
const (
	maxPerSecond = 1000.0
	// An order that was sent is given up on after supply.SendFor, so its one call
	// must have ended before.
	maxTimeoutSeconds = 40
)

var cityCode = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

var providerFields = []string{"name", "kind", "base_url", "secrets", "options", "locations", "per_second", "timeout_seconds"}

// provider reads one provider and tries whether it can be made.
func (r *shelfReader) provider(v value) {
	m := v.fields(providerFields...)
	s := upstream.Spec{
		Name:    r.providerName(m.need("name", "products name the provider by it")),
		Kind:    m.need("kind", "what sells there, such as gateway").text(),
		BaseURL: baseURL(m.get("base_url")),
		Secrets: map[string]string{}, Options: map[string]string{}, Locations: map[string]string{},
		PerSecond: perSecond(m.get("per_second")),
		Timeout:   time.Duration(m.get("timeout_seconds").whole(1, maxTimeoutSeconds, 0)) * time.Second,
	}
	for _, p := range m.get("secrets").pairs() {
		s.Secrets[p.key] = secret(p.value)
	}
	for _, p := range m.get("options").pairs() {
		s.Options[p.key] = p.text()
	}
	for _, p := range m.get("locations").pairs() {
		s.Locations[p.key] = location(p)
	}
	r.specs = append(r.specs, s)
	if s.Kind == "" {
		return
	}
	made, err := r.make(s, slog.New(slog.DiscardHandler))
	if err != nil {
		blame(m, err, s.Secrets)
		return
	}
	r.sellers[s.Name] = made
}

func (r *shelfReader) providerName(v value) string {
	name, ok := v.scalar()
	switch {
	case !ok:
	case !catalog.IsProviderName(name):
		v.fault("must be 1 to 32 of a-z, 0-9, _ and -")
	case name == embedded.Name:
		v.fault("is the name of the embedded provider; take another")
	case r.written[name]:
		v.fault("is the name of another provider too")
	}
	r.written[name] = true
	return name
}

func baseURL(v value) string {
	text, ok := v.scalar()
	if !ok {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		v.fault("must be an http or https URL without user info and query")
	}
	return strings.TrimSuffix(text, "/")
}

func perSecond(v value) float64 {
	text, ok := v.scalar()
	if !ok {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= maxPerSecond) {
		v.fault("must be a number above 0 and at most %g", maxPerSecond)
		return 0
	}
	return n
}

// location is the seller's own id of a place.
func location(p pair) string {
	country, city, ok := strings.Cut(p.key, "/")
	if !isCountry(country) || ok && !cityCode.MatchString(city) {
		p.fault("must be a country such as US, or a country and a city such as US/newyork")
	}
	id, ok := p.scalar()
	if ok && id == "" || !p.given() {
		p.fault("is missing: the id of the place at the seller")
	}
	return id
}

func isCountry(code string) bool {
	_, ok := slices.BinarySearch(country.Codes, code)
	return ok
}

// blame notes what a provider says of its settings, at the line of the setting
// that it names first. What was faulted already is not said again.
func blame(m fields, err error, secrets map[string]string) {
	type note struct {
		at   value
		text string
	}
	var notes []note
	for _, e := range leaves(err) {
		text := strings.ReplaceAll(hide(e.Error(), secrets), "\n", " ")
		word, rest, _ := strings.Cut(text, " ")
		head, part, nested := strings.Cut(strings.TrimSuffix(word, ":"), ".")
		at := m.of
		if slices.Contains(providerFields, head) {
			at, text = m.get(head), rest
			if nested {
				at = entry(at, part)
			}
			if at.faulty() {
				continue
			}
		}
		notes = append(notes, note{at, text})
	}
	for _, n := range notes {
		n.at.fault("%s", n.text)
	}
}

// leaves are the single errors of a joined one.
func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, e := range joined.Unwrap() {
		list = append(list, leaves(e)...)
	}
	return list
}

// entry is an entry of a mapping, absent or not.
func entry(v value, key string) value {
	if m, ok := v.node.(*ast.MappingNode); ok {
		for _, e := range m.Values {
			if e.Key.GetToken().Value == key {
				c := v.child(key)
				c.node, c.line = v.doc.resolve(e.Value), e.Key.GetToken().Position.Line
				return c
			}
		}
	}
	return v.child(key)
}
