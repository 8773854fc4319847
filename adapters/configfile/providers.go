package configfile

import (
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

// Bounds of a provider's settings.
const (
	maxPerSecond = 1000.0
	// Some sellers work for up to two minutes before they answer an order. The caller
	// of a provider bounds its calls too.
	maxTimeoutSeconds = 150
)

// Provider holds the settings of a provider. Their meaning is the kind's.
type Provider struct {
	Name, Kind string
	BaseURL    string // empty if the kind's own
	Secrets    map[string]Secret
	Options    map[string]string
	Locations  map[string]string // the provider's ids of places, by US or US/newyork
	PerSecond  float64           // calls of the provider's API; 0 if the kind's own
	Timeout    time.Duration     // of a call; 0 if the kind's own
	Dir        string            // of the file, which relative paths of options begin at
	Resolve    string            // where names of targets are resolved: here, upstream or, if empty, by the address
}

// provider reads one provider and creates it, to check its settings.
func (l *loader) provider(v value) {
	m := v.fields(providerKeys)
	s := Provider{
		Name:    l.providerName(m.need("name")),
		Kind:    m.need("kind").text(),
		BaseURL: baseURL(m.get("base_url")), Dir: filepath.Dir(v.doc.file),
		Secrets: map[string]Secret{}, Options: map[string]string{}, Locations: map[string]string{},
		PerSecond: perSecond(m.get("per_second")),
		Timeout:   time.Duration(m.get("timeout_seconds").integer(1, maxTimeoutSeconds, 0)) * time.Second,
	}
	for _, p := range m.get("secrets").pairs() {
		s.Secrets[p.key] = Secret(secret(p.value))
	}
	for _, p := range m.get("options").pairs() {
		s.Options[p.key] = p.text()
		if other := l.soldFrom(p.key, p.text(), s.Dir); other != "" {
			p.fault("is the file of the provider %s too, so that each would sell what the other has sold", other)
		}
	}
	for _, p := range m.get("locations").pairs() {
		s.Locations[p.key] = l.location(p)
	}
	if at := m.get("resolve"); at.given() {
		if s.Resolve = at.text(); s.Resolve != "here" && s.Resolve != "upstream" {
			at.fault("must be here or upstream")
		}
	}
	l.sourcing(m.get("sourcing"))
	l.config.Providers = append(l.config.Providers, s)
	if s.Kind == "" {
		return
	}
	created, err := l.NewProvider(s)
	if err != nil {
		locate(m, err, s.Secrets)
		return
	}
	l.sellers[s.Name] = created
}

// soldFrom returns the provider before that has the same file as an option; empty if none has.
func (l *loader) soldFrom(option, name, dir string) string {
	path := func(name string) string {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if real, err := filepath.EvalSymlinks(name); err == nil {
			return real
		}
		return filepath.Clean(name)
	}
	for _, p := range l.config.Providers {
		if option == "file" && name != "" && p.Options["file"] != "" && path(p.Options["file"]) == path(name) {
			return p.Name
		}
	}
	return ""
}

func (l *loader) providerName(v value) string {
	name, ok := v.scalar()
	switch {
	case !ok:
	case !catalog.IsProviderName(name):
		v.fault("must be 1 to 32 of a-z, 0-9, _ and -")
	case name == l.EmbeddedProvider:
		v.fault("is reserved for the embedded provider; choose another")
	case l.names[name]:
		v.fault("duplicate name: another provider has it too")
	}
	l.names[name] = true
	return name
}

func baseURL(v value) string {
	text, ok := v.scalar()
	if !ok {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || !isBaseURL(u) || u.Fragment != "" {
		v.fault("must be an http or https URL without user info, query and fragment")
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

// location returns the provider's id of a place.
func (l *loader) location(p pair) string {
	country, city, ok := strings.Cut(p.key, "/")
	if !l.isCountry(country) || ok && !session.IsLabel(city) {
		p.fault("must be a country code such as US, or a country and a city such as US/newyork")
	}
	id, ok := p.scalar()
	if ok && id == "" || !p.given() {
		p.fault("is missing: the provider's id of the place")
	}
	return id
}

func (l *loader) isCountry(code string) bool {
	_, ok := slices.BinarySearch(l.Countries, code)
	return ok
}

// locate adds the faults in the error of a provider, each at the line of the
// setting that it names first, unless the setting has a fault already.
func locate(m fields, err error, secrets map[string]Secret) {
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
		if slices.ContainsFunc(providerKeys, func(k key) bool { return k.name == head }) {
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

// entry returns an entry of a mapping, absent or not.
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
