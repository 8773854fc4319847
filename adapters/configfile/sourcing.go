package configfile

import (
	"net/url"
	"time"
)

// sourcing checks what the operator noted about where a provider gets its addresses.
// That it is absent, or was read more than a year ago, is a warning.
func (l *loader) sourcing(v value) {
	warn := func(text string) {
		l.warnings = append(l.warnings, Fault{v.doc.file, v.line, v.path, text})
	}
	if !v.given() {
		warn("is missing: note where the provider states how it gets the consent of those whose addresses it sells")
		return
	}
	m := v.fields(sourcingKeys)
	if statement := m.need("statement"); statement.given() && statement.text() == "" && !statement.faulty() {
		statement.fault("must not be empty")
	}
	link := m.need("url")
	if text, ok := link.scalar(); ok {
		if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			link.fault("must be an https URL without user info")
		}
	}
	reviewed := m.need("reviewed")
	text, ok := reviewed.scalar()
	if !ok {
		return
	}
	at, err := time.Parse(time.DateOnly, text)
	switch now := l.Now(); {
	case err != nil:
		reviewed.fault("must be a day as YYYY-MM-DD")
	case at.After(now.Add(24 * time.Hour)):
		reviewed.fault("must not be in the future")
	case !at.AddDate(1, 0, 1).After(now):
		warn("was reviewed on " + text + ", more than a year ago: read the provider's statement again")
	}
}
