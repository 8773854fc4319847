package webhook

import (
	"net/url"
	"strconv"
	"strings"

	"agentproxy/domain/egress"
)

// parseURL parses the URL of a webhook and refuses what its text alone makes
// invalid, before a lookup.
func parseURL(text string, dev bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":"):
		return nil, errURL
	case u.User != nil:
		return nil, errUser
	case u.Scheme == "http" && !dev:
		return nil, errPlain
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errURL
	}
	if _, err := egress.ParseHost(u.Hostname()); err != nil {
		return nil, refused(err)
	}
	if text := u.Port(); text != "" {
		if port, err := strconv.ParseUint(text, 10, 16); err != nil || port == 0 {
			return nil, errURL
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}
