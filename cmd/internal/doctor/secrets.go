package doctor

import (
	"net/url"
	"slices"
	"strings"

	"agentproxy/adapters/configfile"
)

// secrets checks the secrets of the settings. No finding repeats a part of one.
func (f *Findings) secrets(s configfile.Settings) {
	const do = "Make one with: openssl rand -base64 32. see docs/operating.md for how to replace it."
	if s.RootSecret != "" {
		f.Root("AGENTPROXY_SECRET", string(s.RootSecret))
	}
	if n := len(s.PreviousSecrets); n > 0 {
		f.add(Warning, "previous_secrets", "Previous root secrets are still accepted.", "What a leaked one made still works.",
			"Remove AGENTPROXY_SECRET_PREVIOUS once agents have new keys; see docs/operating.md.")
		if slices.Contains(s.PreviousSecrets, s.RootSecret) && s.RootSecret != "" {
			f.add(Error, "previous_secrets", "AGENTPROXY_SECRET is among the previous ones too.", "It was not replaced.", do)
		}
	}
	if s.DatabaseURL != "" {
		f.database(string(s.DatabaseURL))
	}
}

// Root checks a root secret by its text.
func (f *Findings) Root(where, text string) {
	if guessable(text) {
		f.add(Error, "root_secret", "The root secret of "+where+" is not random.", "Who guesses it forges every credential "+
			"and opens what is sealed.",
			"Make one with: openssl rand -base64 32. see docs/operating.md for how to replace it.")
		return
	}
	f.ok("root_secret", "The root secret of %s looks random.", where)
}

// placeholders are words of secrets that were copied from an example.
var placeholders = []string{"agentproxy", "changeme", "change-me", "change_me", "default", "example", "insecure",
	"password", "placeholder", "replace", "secret", "qwerty", "12345678", "abcdefgh"}

// guessable reports whether a text is not a random one of its length: it holds a word of an example,
// repeats itself, counts, or is made of words. Of 44 random base64 characters fewer than 1 in a
// million are.
func guessable(text string) bool {
	text = strings.TrimSpace(text)
	lower := strings.ToLower(text)
	if slices.ContainsFunc(placeholders, func(word string) bool { return strings.Contains(lower, word) }) {
		return true
	}
	for period := 1; period <= len(text)/2; period++ {
		if strings.HasPrefix(text, text[period:]) {
			return true
		}
	}
	steps := 0
	for i := 1; i < len(text); i++ {
		if d := int(text[i]) - int(text[i-1]); d >= -1 && d <= 1 {
			steps++
		}
	}
	return steps > len(text)/2 || !strings.ContainsAny(text, "0123456789") && lower == text
}

// database checks the password and the transport of a PostgreSQL URL.
func (f *Findings) database(text string) {
	u, err := url.Parse(text)
	if err != nil {
		return // the driver reads more forms than this
	}
	password, given := u.User.Password()
	switch {
	case given && (password == u.User.Username() || slices.Contains(placeholders, strings.ToLower(password)) ||
		password == "postgres"):
		f.add(Error, "database_password", "The password of the database is a default one.",
			"Anyone who reaches its port has every account and the ledger.",
			"Change the role's password and AGENTPROXY_DATABASE_URL; with compose.yaml set POSTGRES_PASSWORD.")
	case given && len(password) < 12:
		f.add(Warning, "database_password", "The password of the database has fewer than 12 characters.",
			"Anyone who reaches its port can guess it.", "Choose a longer one.")
	default:
		f.ok("database_password", "The password of the database is not a default one.")
	}
	local := isLocal(u.Hostname()) // a socket has no host
	if mode := u.Query().Get("sslmode"); !local && mode != "verify-full" && mode != "verify-ca" && mode != "require" {
		f.add(Warning, "database_tls", "The connection to the database may be without TLS.",
			"On a network that others use, they read and change it.", "Add sslmode=verify-full to AGENTPROXY_DATABASE_URL, "+
				"unless the network is the containers' own.")
	}
}
