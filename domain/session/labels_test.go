package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

func TestLabels(t *testing.T) {
	many := session.Labels{}
	for i := range session.MaxLabels + 1 {
		many[fmt.Sprint(i)] = "x"
	}
	for name, c := range map[string]struct {
		labels session.Labels
		valid  bool
	}{
		"none":                {nil, true},
		"usual ones":          {session.Labels{"team": "prices", "a-b_1": "Für: alle, mit ümlaut"}, true},
		"an empty value":      {session.Labels{"team": ""}, true},
		"64 characters":       {session.Labels{"team": strings.Repeat("ü", 64)}, true},
		"65 characters":       {session.Labels{"team": strings.Repeat("ü", 65)}, false},
		"a line break":        {session.Labels{"team": "a\nb:c"}, false},
		"an upper case key":   {session.Labels{"Team": "x"}, false},
		"an empty key":        {session.Labels{"": "x"}, false},
		"a key with a colon":  {session.Labels{"a:b": "x"}, false},
		"a key that is long":  {session.Labels{strings.Repeat("a", 33): "x"}, false},
		"a key of 32":         {session.Labels{strings.Repeat("a", 32): "x"}, true},
		"more than there may": {many, false},
	} {
		if err := c.labels.Check(); (err == nil) != c.valid || err != nil && !errors.Is(err, domain.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, want := range map[string][2]string{"team:prices": {"team", "prices"}, "a:b:c": {"a", "b:c"}, "a:": {"a", ""}} {
		if key, value, err := session.ParseLabel(text); err != nil || key != want[0] || value != want[1] {
			t.Errorf("%q is %q, %q, %v", text, key, value, err)
		}
	}
	for _, text := range []string{"", "team", ":x", "Team:x", "team:" + strings.Repeat("x", 65)} {
		if _, _, err := session.ParseLabel(text); !errors.Is(err, domain.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
