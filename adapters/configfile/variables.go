package configfile

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// variableFaults names the variables that could not be parsed; the library's
// errors name the fields.
func variableFaults(err error) []error {
	list, ok := errors.AsType[env.AggregateError](err)
	if !ok {
		return []error{err}
	}
	var faults []error
	for _, e := range list.Errors {
		parse, ok := errors.AsType[env.ParseError](e)
		field, found := reflect.TypeFor[Config]().FieldByName(parse.Name)
		if !ok || !found {
			return []error{err}
		}
		faults = append(faults, Fault{Path: field.Tag.Get("env"), Text: "must be " + typeInWords(parse.Type)})
	}
	return faults
}

// typeInWords describes the values of a type.
func typeInWords(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "of type " + t.String()
}

// injected matches variables that a container platform sets for a service of the
// name agentproxy.
var injected = regexp.MustCompile(`^AGENTPROXY_(SERVICE|PORT)(_|$)`)

// unknownVariables warns of variables that look like settings and are none, such
// as misspelt ones: the default in their place may accept development money.
// Secrets are the variables that the file names, whatever their prefix.
func unknownVariables(environ, secrets []string) (warnings []Fault) {
	known := append([]string{"AGENTPROXY_CONFIG"}, secrets...)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		known = append(known, f.Tag.Get("env"))
	}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "AGENTPROXY_") && !slices.Contains(known, name) && !injected.MatchString(name) {
			warnings = append(warnings, Fault{Path: name, Text: "is not a setting of agentproxy and has no effect; check " +
				"its spelling"})
		}
	}
	slices.SortFunc(warnings, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	return warnings
}
