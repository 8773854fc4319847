package session

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentproxy/domain"
)

// Labels are an agent's own words for a session, values by key.
type Labels map[string]string

// The bounds of labels.
const (
	MaxLabels     = 16
	MaxLabelValue = 64 // characters
)

var labelKey = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// Check returns INVALID_REQUEST with every label that is out of bounds.
func (l Labels) Check() error {
	var c checker
	l.check(&c)
	return c.err()
}

func (l Labels) check(c *checker) {
	if len(l) > MaxLabels {
		c.add("labels", "must be at most %d", MaxLabels)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(l)) {
		switch value := l[key]; {
		case !labelKey.MatchString(key):
			c.add("labels", "must have keys of 1 to 32 of a-z, 0-9, _ and -")
		case utf8.RuneCountInString(value) > MaxLabelValue || strings.ContainsFunc(value, unicode.IsControl):
			c.add("labels."+key, "must have at most %d characters and no control characters", MaxLabelValue)
		}
	}
}

// ParseLabel reads key:value, as lists are filtered by. The value may have colons.
func ParseLabel(text string) (key, value string, err error) {
	key, value, ok := strings.Cut(text, ":")
	if !ok || !labelKey.MatchString(key) || utf8.RuneCountInString(value) > MaxLabelValue {
		return "", "", domain.InvalidField("label", "must be key:value")
	}
	return key, value, nil
}
