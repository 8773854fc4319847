package mcp

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

const hidden = "[hidden]"

// patterns find what may be a secret of this service, also one that an agent pasted: keys and secrets,
// access tokens, and the proxy passwords of the gateway (32 of a-z and 2-7).
var patterns = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:ak|sk|whsec)_[A-Za-z0-9+/=]{8,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`),
	regexp.MustCompile(`\b[a-z2-7]{32}\b`),
}

// userinfo finds credentials in an address, also in one that JSON escapes.
var userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*:(?:\\?/){2}[^\s/:@"'\\]*):([^\s/@"'\\]+)@`)

// scrub hides what looks like a secret. The mask of a password stays.
func scrub(text string) string {
	for _, p := range patterns {
		text = p.ReplaceAllString(text, hidden)
	}
	return userinfo.ReplaceAllStringFunc(text, func(found string) string {
		m := userinfo.FindStringSubmatch(found)
		if m[2] == "***" {
			return found
		}
		return m[1] + ":***@"
	})
}

// secrets are the secrets that the operations of a call returned.
type secrets struct {
	mu   sync.Mutex
	list []string
	open bool // the operator allowed the answer to show them, and the agent asked
}

// shortest is the length of the shortest text that is hidden wherever it occurs: a shorter one would
// hide words.
const shortest = 6

// add notes a secret.
func (s *secrets) add(text string) {
	if len(text) < shortest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, text)
}

// reveal lets the answer show the secrets.
func (s *secrets) reveal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
}

func (s *secrets) revealed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// hide hides the secrets that were noted and what looks like one.
func (s *secrets) hide(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range s.list {
		text = strings.ReplaceAll(text, secret, hidden)
		if quoted, err := json.Marshal(secret); err == nil { // as the text has it, which is JSON
			text = strings.ReplaceAll(text, string(bytes.Trim(quoted, `"`)), hidden)
		}
	}
	return scrub(text)
}
