// Package kind has what the package of a seller registers: its settings, which are the tagged fields of its Config, and
// what creates its provider.
package kind

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/ports"
)

// Spec is a provider as the operator configured it.
type Spec struct {
	Name string
	Kind string
	// BaseURL replaces the URL of the seller's API; empty: the seller's own.
	BaseURL string
	// Secrets and Options are settings by their names.
	Secrets map[string]string
	Options map[string]string
	// Locations are the seller's own ids or spellings of places, by country ("US") or
	// country and city ("US/newyork").
	Locations map[string]string
	PerSecond float64       // calls of its API; 0: the adapter's default
	Timeout   time.Duration // of a call; 0: the adapter's default
	// Dir is the folder of the configuration file, which relative paths begin at.
	Dir string
	Env
}

// Env is what the service has for the kinds that need it. The zero Env checks settings and
// lists what is sold, and sells nothing of such a kind.
type Env struct {
	Store   ports.Store // records which lines of a list are sold
	EchoURL string      // of the service's own echo, as the world reaches it
}

// LogValue hides the secrets from logs.
func (s Spec) LogValue() slog.Value { return slog.StringValue(s.Name + " (" + s.Kind + ")") }

// Common is what a Config of every kind embeds: what a Spec has beside the settings of its kind.
type Common struct {
	Name      string
	BaseURL   string
	Locations map[string]string
	PerSecond float64
	Timeout   time.Duration
	Dir       string
	Env
	Log *slog.Logger
}

func (c *Common) common() *Common { return c }

// config is a pointer to a struct that embeds Common.
type config interface{ common() *Common }

// API returns how an API is called at the operator's URL or the usual one. No secret of the Config, which is passed by
// its pointer, gets into an error or a log.
func API(c config, usual string) rest.Config {
	base := c.common()
	r := rest.Config{Name: base.Name, Base: strings.TrimRight(cmp.Or(base.BaseURL, usual), "/"), PerSecond: base.PerSecond,
		Timeout: base.Timeout, Log: base.Log}
	v := reflect.ValueOf(c).Elem()
	for _, s := range settingsOf(v.Type(), nil) {
		if text := v.FieldByIndex(s.index).String(); s.Secret && text != "" {
			r.Hide = append(r.Hide, text)
		}
	}
	return r
}

// Setting is an option or a secret of a kind.
type Setting struct {
	Name     string
	Secret   bool
	Required bool
	Help     string
	index    []int // of the field
}

// String returns the path of the setting in a provider of the configuration.
func (s Setting) String() string {
	if s.Secret {
		return "secrets." + s.Name
	}
	return "options." + s.Name
}

// Kind is a kind of provider that can be configured.
type Kind struct {
	Name     string
	Settings []Setting // by their paths
	create   func(Spec, *slog.Logger) (ports.Provider, error)
}

// Of returns a kind. Its settings are the fields of C, and of the structs in it, with the tag option or secret, which
// is the name, and the tags required and help. A field is a text, a bool, which is written as true or false, or a time,
// which is written in minutes.
func Of[C any, P ports.Provider, PC interface {
	*C
	config
}](name string, create func(C) (P, error)) Kind {
	settings := settingsOf(reflect.TypeFor[C](), nil)
	slices.SortFunc(settings, func(a, b Setting) int { return strings.Compare(a.String(), b.String()) })
	return Kind{name, settings, func(s Spec, log *slog.Logger) (ports.Provider, error) {
		var c C
		*PC(&c).common() = Common{s.Name, s.BaseURL, s.Locations, s.PerSecond, s.Timeout, s.Dir, s.Env, log}
		var faults []error
		for _, setting := range settings {
			faults = append(faults, setting.set(reflect.ValueOf(&c).Elem().FieldByIndex(setting.index), s))
		}
		p, err := create(c)
		if err = errors.Join(append(faults, err)...); err != nil {
			return nil, err // and no interface with a nil pointer
		}
		return p, nil
	}}
}

// Describe returns the kind with another help for an option, of what a tag cannot name.
func (k Kind) Describe(option, help string) Kind {
	k.Settings = slices.Clone(k.Settings)
	for i, s := range k.Settings {
		if s.Name == option && !s.Secret {
			k.Settings[i].Help = help
		}
	}
	return k
}

// settingsOf returns the settings of a struct, in the order of its fields.
func settingsOf(t reflect.Type, at []int) (settings []Setting) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		option, secret := f.Tag.Get("option"), f.Tag.Get("secret")
		switch {
		case option+secret != "":
			settings = append(settings, Setting{option + secret, secret != "", f.Tag.Get("required") == "true",
				f.Tag.Get("help"), index})
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[Common]():
			settings = append(settings, settingsOf(f.Type, index)...)
		}
	}
	return settings
}

// Given returns the names of the options of a struct that are set, by name.
func Given(config any) (names []string) {
	v := reflect.ValueOf(config)
	for _, s := range settingsOf(v.Type(), nil) {
		if !v.FieldByIndex(s.index).IsZero() {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// set writes what the operator wrote for a setting into its field.
func (s Setting) set(field reflect.Value, from Spec) error {
	text := from.Options[s.Name]
	if s.Secret {
		text = from.Secrets[s.Name]
	}
	switch field.Interface().(type) {
	case bool:
		if text != "" && text != "true" && text != "false" {
			return fmt.Errorf("%s must be true or false", s)
		}
		field.SetBool(text == "true")
	case time.Duration:
		n, err := strconv.Atoi(cmp.Or(text, "0"))
		if err != nil || text != "" && n < 1 || n > 1440 {
			return fmt.Errorf("%s must be 1 to 1440", s)
		}
		field.SetInt(int64(time.Duration(n) * time.Minute))
	default:
		field.SetString(text)
	}
	return nil
}

// New creates a provider. Its error names every invalid setting and no secret.
func (k Kind) New(s Spec, log *slog.Logger) (ports.Provider, error) {
	if faults := append(k.check(true, s.Secrets), k.check(false, s.Options)...); len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return k.create(s, log)
}

// check returns the faults of secrets or of options that are required and missing, or unknown.
func (k Kind) check(secrets bool, given map[string]string) (faults []error) {
	known := map[string]bool{}
	for _, s := range k.Settings {
		if s.Secret != secrets {
			continue
		}
		known[s.Name] = true
		if s.Required && given[s.Name] == "" {
			faults = append(faults, fmt.Errorf("%s is missing: %s", s, s.Help))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			faults = append(faults, fmt.Errorf("%s does not exist", Setting{Name: name, Secret: secrets}))
		}
	}
	return faults
}
