package connect_test

import (
	"strings"
	"testing"

	"agentproxy/domain/connect"
)

// A browser gets the time zone and the locale of its exit; what is not known is a comment, and no other client has them.
func TestPassport(t *testing.T) {
	t.Parallel()
	browsers := 0
	for _, name := range connect.Names() {
		c, _ := connect.Find(name)
		plain := c.Snippet(uses["worker"])
		if !c.Browser() {
			continue
		}
		browsers++
		for _, p := range []connect.Passport{{"Europe/Vilnius", "lt-LT"}, {}, {`"x\"/` + "\n", ""}} {
			u := uses["worker"]
			u.Passport = &p
			text := c.Snippet(u)
			if err := reads(t, c.Language, text); err != nil {
				t.Errorf("%s with %q does not compile: %v", name, p, err)
			}
			if p.Locale != "" && (strings.Count(text, `"Europe/Vilnius"`) != 1 || !strings.Contains(text, `"lt-LT"`) || strings.Contains(text, "not measured")) {
				t.Errorf("%s: %s", name, text)
			}
			if p == (connect.Passport{}) && (strings.Count(text, "not measured") != 2 || strings.Contains(text, `""`)) {
				t.Errorf("%s of an exit that was not measured: %s", name, text)
			}
			if strings.Contains(plain, "not measured") || strings.Contains(plain, "ocale") {
				t.Errorf("%s without a passport: %s", name, plain)
			}
		}
	}
	if browsers != 3 {
		t.Errorf("%d clients drive a browser", browsers)
	}
}
