package account_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/account"
)

// faults are the fields that an INVALID_REQUEST names; none for no error.
func faults(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *domain.Error
	if !errors.As(err, &e) || !errors.Is(err, domain.ErrInvalid) {
		t.Fatalf("error %v, want INVALID_REQUEST", err)
	}
	var fields []string
	for _, issue := range e.Details["fields"].([]domain.FieldIssue) {
		fields = append(fields, issue.Field)
	}
	return fields
}

func TestName(t *testing.T) {
	for _, c := range []struct {
		claim, name string
		want        string // after trimming; empty: refused
	}{
		{"two characters are enough", "ab", "ab"},
		{"one is not", "a", ""},
		{"characters are counted, not bytes", strings.Repeat("ü", 100), strings.Repeat("ü", 100)},
		{"101 are too many", strings.Repeat("a", 101), ""},
		{"it is trimmed before it is counted", " \u00a0 " + strings.Repeat("a", 100) + "  ", strings.Repeat("a", 100)},
		{"spaces alone are no name", "     ", ""},
		{"nor is nothing", "", ""},
		{"spaces inside stay", "my  agent", "my  agent"},
		{"a line feed is refused", "a\nb", ""},
		{"even at the end", "agent\n", ""},
		{"a zero byte", "a\x00b", ""},
		{"delete", "ab\x7f", ""},
		{"a C1 control", "ab\u0085", ""},
		{"a right-to-left override", "abc\u202edef", ""},
		{"an isolate", "abc\u2066def", ""},
		{"a right-to-left mark", "abc\u200f", ""},
		{"a zero width space", "a\u200bb", ""},
		{"a byte order mark", "\ufeffab", ""},
		{"a soft hyphen", "a\u00adb", ""},
		{"a line separator", "a\u2028b", ""},
		{"a tag character", "ab\U000e0041", ""},
		{"a joined emoji is a name", "👩\u200d🔬 lab", "👩\u200d🔬 lab"},
		{"Persian needs the non-joiner", "می\u200cخواهم", "می\u200cخواهم"},
		{"joiners alone cannot be seen", "\u200d\u200d\u200d", ""},
		{"invalid UTF-8", "ab\xff", ""},
		{"any script", "代理人", "代理人"},
		{"markup is text", "<script>", "<script>"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p, err := account.Profile{Name: c.name}.Check(false)
			if c.want == "" {
				if got := faults(t, err); !slices.Equal(got, []string{"name"}) {
					t.Errorf("faults in %v, want name", got)
				}
				return
			}
			if err != nil || p.Name != c.want {
				t.Errorf("got %q, %v", p.Name, err)
			}
		})
	}
}

func TestContactEmail(t *testing.T) {
	for email, ok := range map[string]bool{
		"":                              true,
		"ops@example.com":               true,
		"first.last+tag@sub.example.eu": true,
		"ops@localhost":                 true,
		"пример@почта.рф":               true,
		strings.Repeat("a", 242) + "@example.com": true,
		strings.Repeat("a", 243) + "@example.com": false,
		"ops":                           false,
		"@example.com":                  false,
		"ops@":                          false,
		"ops@@example.com":              false,
		"a@b@example.com":               false,
		`"a@b"@example.com`:             false,
		"Ops <ops@example.com>":         false,
		"<ops@example.com>":             false,
		"ops@example.com (comment)":     false,
		" ops@example.com":              false,
		"ops@example.com, b@c.com":      false,
		"ops@example.com\r\nBcc: x@y.z": false,
		"ops@example.com\n":             false,
		"ops\x00@example.com":           false,
		"ops@exam\u202eple.com":         false,
		"ops@example..com":              false,
	} {
		_, err := account.Profile{Name: "agent", ContactEmail: email}.Check(false)
		if got := faults(t, err); ok != (got == nil) || got != nil && got[0] != "contact_email" {
			t.Errorf("%q: faults in %v, want it taken: %v", email, got, ok)
		}
	}
}

func TestWebhookURL(t *testing.T) {
	for _, c := range []struct {
		url       string
		live, dev bool // taken in production, in development mode
	}{
		{"", true, true},
		{"https://example.com/hook?a=1", true, true},
		{"HTTPS://EXAMPLE.COM", true, true},
		{"https://example.com:8443/", true, true},
		{"https://[2001:db8::1]:443/x", true, true},
		{"http://127.0.0.1:9000/hook", false, true},
		{"http://example.com", false, true},
		{"https://" + strings.Repeat("a", 2040), true, true},
		{"https://" + strings.Repeat("a", 2041), false, false},
		{"ftp://example.com", false, false},
		{"javascript:alert(1)", false, false},
		{"//example.com", false, false},
		{"example.com/hook", false, false},
		{"https:example.com", false, false},
		{"https://", false, false},
		{"https:///path", false, false},
		{"https://:443/", false, false},
		{"https://example.com:/", false, false},
		{"https://example.com:0/", false, false},
		{"https://example.com:65536/", false, false},
		{"https://example.com:http/", false, false},
		{"https://user@example.com", false, false},
		{"https://user:secret@example.com", false, false},
		{"https://@example.com", false, false},
		{"https://good.com\\@evil.com", false, false},
		{"https://example.com/a b", false, false},
		{"https://example.com/\r\nX-Evil: 1", false, false},
		{"https://example.com/\u202e", false, false},
		{" https://example.com", false, false},
		{"https://example.com/%zz", false, false},
	} {
		for _, dev := range []bool{false, true} {
			want := map[bool]bool{false: c.live, true: c.dev}[dev]
			_, err := account.Profile{Name: "agent", WebhookURL: c.url}.Check(dev)
			if got := faults(t, err); want != (got == nil) || got != nil && got[0] != "webhook_url" {
				t.Errorf("%.60q, dev %v: faults in %v, want it taken: %v", c.url, dev, got, want)
			}
		}
	}
}

func TestDescription(t *testing.T) {
	for text, ok := range map[string]bool{
		"":                        true,
		strings.Repeat("ü", 500):  true,
		strings.Repeat("ü", 501):  false,
		"two\r\nlines\tand a tab": true,
		"a zero\x00byte":          false,
		"an override \u202e":      false,
		"half a character \xc3":   false,
	} {
		_, err := account.Profile{Name: "agent", Description: text}.Check(false)
		if got := faults(t, err); ok != (got == nil) {
			t.Errorf("%.30q: faults in %v, want it taken: %v", text, got, ok)
		}
	}
}

func TestEveryFaultIsNamed(t *testing.T) {
	_, err := account.Profile{Name: "x", ContactEmail: "x", WebhookURL: "x", Description: "\x00"}.Check(true)
	if got, want := faults(t, err), []string{"name", "contact_email", "webhook_url", "description"}; !slices.Equal(got, want) {
		t.Errorf("faults in %v, want %v", got, want)
	}
}

func TestUpdate(t *testing.T) {
	now := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	before := account.Agent{ID: "agt_1", Name: "agent", ContactEmail: "a@b.c", WebhookURL: "http://old", Description: "old"}
	text := func(s string) *string { return &s }
	t.Run("what is not given stays, whatever it is", func(t *testing.T) {
		got, err := before.Apply(account.Update{Name: text("  new  ")}, false, now)
		want := before
		want.Name, want.UpdatedAt = "new", now
		if err != nil || !sameAgent(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("the empty string clears what is optional", func(t *testing.T) {
		got, err := before.Apply(account.Update{ContactEmail: text(""), WebhookURL: text(""), Description: text("")}, false, now)
		want := account.Agent{ID: "agt_1", Name: "agent", UpdatedAt: now}
		if err != nil || !sameAgent(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("the name cannot be cleared", func(t *testing.T) {
		got, err := before.Apply(account.Update{Name: text("")}, false, now)
		if !slices.Equal(faults(t, err), []string{"name"}) || !sameAgent(got, before) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("a refused update changes nothing and names every fault", func(t *testing.T) {
		got, err := before.Apply(account.Update{Name: text("new"), ContactEmail: text("x"), WebhookURL: text("http://x")}, false, now)
		if !slices.Equal(faults(t, err), []string{"contact_email", "webhook_url"}) || !sameAgent(got, before) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("plain http is for development mode", func(t *testing.T) {
		if got, err := before.Apply(account.Update{WebhookURL: text("http://x")}, true, now); err != nil || got.WebhookURL != "http://x" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func sameAgent(a, b account.Agent) bool {
	return a.ID == b.ID && a.Name == b.Name && a.ContactEmail == b.ContactEmail && a.WebhookURL == b.WebhookURL &&
		a.Description == b.Description && a.UpdatedAt.Equal(b.UpdatedAt)
}

func TestWhatIsTakenCanBeStoredAndPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := account.Profile{Name: rapid.String().Draw(t, "name"), Description: rapid.String().Draw(t, "description")}
		p, err := in.Check(false)
		if err != nil {
			return
		}
		if n := utf8.RuneCountInString(p.Name); n < 2 || n > 100 || p.Name != strings.TrimSpace(in.Name) {
			t.Errorf("the name %q has %d characters", p.Name, n)
		}
		if strings.ContainsFunc(p.Name, unicode.IsControl) || strings.ContainsRune(p.Description, 0) || !utf8.ValidString(p.Name+p.Description) {
			t.Errorf("taken: %q %q", p.Name, p.Description)
		}
	})
}

func TestScopes(t *testing.T) {
	for _, c := range []struct {
		claim       string
		asked, want []account.Scope
	}{
		{"none asked is all", nil, account.Scopes},
		{"repeats and order do not matter", []account.Scope{account.StatsRead, account.AccountRead, account.StatsRead}, []account.Scope{account.AccountRead, account.StatsRead}},
		{"an unknown one is refused", []account.Scope{account.StatsRead, "admin"}, nil},
		{"an empty one is refused", []account.Scope{""}, nil},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := account.CheckScopes(c.asked)
			if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
