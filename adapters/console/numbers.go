package console

import (
	"net/url"
	"strings"

	"agentproxy/domain"
)

// number reads a decimal of a form; nil: the field is empty. A number that is none is out of every bound.
func number(form url.Values, name string, places int) *int64 {
	text := strings.TrimSpace(form.Get(name))
	if text == "" {
		return nil
	}
	n, err := domain.ParseDecimal(text, places)
	if err != nil {
		n = -1
	}
	return &n
}

// noComma refuses fields with a comma in words: half the world writes 0,5, and 1,000 may be either.
func noComma(form url.Values, names ...string) error {
	for _, name := range names {
		text := strings.TrimSpace(form.Get(name))
		if !strings.Contains(text, ",") {
			continue
		}
		whole, rest, _ := strings.Cut(text, ",")
		if strings.ContainsAny(rest, ",.") || strings.ContainsAny(whole, ".") {
			return domain.InvalidField(name, "has a comma; write it with one point, such as 1000.50")
		}
		return domain.InvalidField(name, "has a comma; write %s", whole+"."+rest)
	}
	return nil
}

// lines returns the lines of a text that are not empty, trimmed.
func lines(text string) []string {
	list := []string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}
