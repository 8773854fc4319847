package connect

import "strings"

// Passport is the place that a browser shows: that of its exit as it was measured. What is not known is empty.
type Passport struct {
	Timezone string // of the IANA database
	Locale   string // BCP 47, as lt-LT
}

// emulation is how a browser is given a time zone and a locale, and how a comment begins.
type emulation struct{ timezone, locale, comment string }

// emulations are those of the clients that drive a browser.
var emulations = map[string]emulation{
	"playwright": {"\n  timezoneId: {VALUE},", "\n  locale: {VALUE},", "\n  // "},
	"puppeteer": {"\nawait page.emulateTimezone({VALUE});",
		"\nawait page.setExtraHTTPHeaders({ \"Accept-Language\": {VALUE} });" +
			"\nawait (await page.createCDPSession()).send(\"Emulation.setLocaleOverride\", { locale: {VALUE} });", "\n// "},
	"selenium": {"\ndriver.execute_cdp_cmd(\"Emulation.setTimezoneOverride\", {\"timezoneId\": {VALUE}})",
		"\ndriver.execute_cdp_cmd(\"Emulation.setLocaleOverride\", {\"locale\": {VALUE}})", "\n# "},
}

// Browser reports whether the client drives a browser, which takes a Passport.
func (c Client) Browser() bool { return emulations[c.Name] != emulation{} }

// passport writes the lines that set the place; empty without a passport. What is not known is left to the browser, and
// a comment has that.
func (c Client) passport(p *Passport) string {
	if p == nil {
		return ""
	}
	e := emulations[c.Name]
	line := func(value, text, unknown string) string {
		if value == "" {
			return e.comment + unknown
		}
		return strings.ReplaceAll(text, "{VALUE}", quoted(value))
	}
	return line(p.Timezone, e.timezone, "time zone of the exit: not measured") +
		line(p.Locale, e.locale, "locale of the exit: not measured")
}
