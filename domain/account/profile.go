package account

import (
	"fmt"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentproxy/domain"
)

// Bounds of a profile. Names and descriptions are counted
// in Unicode characters, addresses in bytes (RFC 5321 section 4.5.3.1.3).
const (
	MinName        = 2
	MaxName        = 100
	MaxDescription = 500
	MaxEmail       = 254
	MaxURL         = 2048
)

// Profile is what an agent publishes about itself.
type Profile struct {
	Name         string
	ContactEmail string // empty if none
	WebhookURL   string // empty if none
	Description  string // empty if none
}

// Check returns the profile with its name trimmed, or INVALID_REQUEST with
// every fault. The scheme http is valid for a webhook in development mode only.
func (p Profile) Check(dev bool) (Profile, error) {
	var issues []domain.FieldIssue
	check := func(field, issue string) {
		if issue != "" {
			issues = append(issues, domain.FieldIssue{Field: field, Issue: issue})
		}
	}
	check("name", nameIssue(p.Name))
	check("contact_email", emailIssue(p.ContactEmail))
	check("webhook_url", urlIssue(p.WebhookURL, dev))
	check("description", descriptionIssue(p.Description))
	if issues != nil {
		return p, domain.InvalidFields(issues...)
	}
	p.Name = strings.TrimSpace(p.Name)
	return p, nil
}

// Update is a change of a profile: nil leaves a field unchanged, the empty
// string (and null in JSON) clears it.
type Update struct {
	Name         *string
	ContactEmail *string
	WebhookURL   *string
	Description  *string
}

// Apply returns the agent after an update, or INVALID_REQUEST with every fault
// of the fields that were given. The name cannot be cleared. Stored values are
// not validated again.
func (a Agent) Apply(u Update, dev bool, now time.Time) (Agent, error) {
	p := Profile{Name: "valid"}
	set := func(to *string, given *string) {
		if given != nil {
			*to = *given
		}
	}
	set(&p.Name, u.Name)
	set(&p.ContactEmail, u.ContactEmail)
	set(&p.WebhookURL, u.WebhookURL)
	set(&p.Description, u.Description)
	p, err := p.Check(dev)
	if err != nil {
		return a, err
	}
	if u.Name != nil {
		a.Name = p.Name
	}
	set(&a.ContactEmail, u.ContactEmail)
	set(&a.WebhookURL, u.WebhookURL)
	set(&a.Description, u.Description)
	a.UpdatedAt = now
	return a, nil
}

func nameIssue(s string) string {
	n := utf8.RuneCountInString(strings.TrimSpace(s))
	switch {
	case hasControl(s, ""):
		return "must not contain control characters"
	case n < MinName || n > MaxName:
		return fmt.Sprintf("must have %d to %d characters", MinName, MaxName)
	case !strings.ContainsFunc(s, visible):
		return "must have a visible character"
	}
	return ""
}

func descriptionIssue(s string) string {
	switch {
	case hasControl(s, "\t\r\n"):
		return "must not contain control characters"
	case utf8.RuneCountInString(s) > MaxDescription:
		return fmt.Sprintf("must have at most %d characters", MaxDescription)
	}
	return ""
}

// emailIssue accepts a bare address only. The parser of net/mail (RFC 5322)
// also accepts names, comments and quoted parts, which would not be stored as
// written.
func emailIssue(s string) string {
	if s == "" {
		return ""
	}
	if len(s) > MaxEmail {
		return fmt.Sprintf("must have at most %d characters", MaxEmail)
	}
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Name != "" || parsed.Address != s || strings.Count(s, "@") != 1 || hasControl(s, "") {
		return "must be an e-mail address such as ops@example.com"
	}
	return ""
}

// urlIssue validates the text only. The addresses that the host resolves to are
// checked when a webhook is sent, because they may change.
func urlIssue(s string, dev bool) string {
	if s == "" {
		return ""
	}
	if len(s) > MaxURL {
		return fmt.Sprintf("must have at most %d characters", MaxURL)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || hasControl(s, "") || strings.ContainsFunc(s, unicode.IsSpace) || u.Hostname() == "" || !portOK(u):
		return "must be an absolute URL such as https://example.com/hook"
	case u.User != nil:
		return "must not contain a user name or password"
	case u.Scheme == "http" && !dev:
		return "must start with https://"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must start with https:// or http://"
	}
	return ""
}

func portOK(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

// Zero width joiner and non-joiner are format controls that names in Persian,
// in Indic scripts and in emoji need.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// hasControl reports whether a text has invalid UTF-8 or characters that change
// how it is displayed or stored: controls (Cc), format controls such as the
// bidirectional overrides (Cf), line and paragraph separators (Zl, Zp).
func hasControl(s, except string) bool {
	bad := func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) &&
			r != zeroWidthJoiner && r != zeroWidthNonJoiner && !strings.ContainsRune(except, r)
	}
	return !utf8.ValidString(s) || strings.ContainsFunc(s, bad)
}

func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
