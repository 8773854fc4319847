package configfile

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// injected are variables that a container platform sets for a service of our
// name.
var injected = regexp.MustCompile(`^AGENTPROXY_(SERVICE|PORT)(_|$)`)

// unknownVariables warns of variables that look like settings and are none, such
// as misspelt ones: the default in their place may sell for development money.
// Secrets are the variables that the file names, which are called as the operator
// likes.
func unknownVariables(environ, secrets []string) (warnings []Fault) {
	known := append([]string{"AGENTPROXY_CONFIG"}, secrets...)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		known = append(known, f.Tag.Get("env"))
	}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "AGENTPROXY_") && !slices.Contains(known, name) && !injected.MatchString(name) {
			warnings = append(warnings, Fault{Path: name, Text: "is no variable of this program and has no effect"})
		}
	}
	slices.SortFunc(warnings, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	return warnings
}
