package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"time"
)

// resolveEvery is how often the service's public names are resolved.
const resolveEvery = time.Minute

// resolveOwn resolves the service's public names until ctx ends.
func (g *Gateway) resolveOwn(ctx context.Context) {
	ticker := time.NewTicker(resolveEvery)
	defer ticker.Stop()
	for {
		g.dialer.Public.Refresh(ctx, g.dialer.Resolver, g.cfg.Timing.Resolve)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// leadsBack reports whether what a client sends into a tunnel has a credential of this
// gateway, by HTTP or SOCKS5: then the tunnel leads back here through an address that is not
// configured, such as a router's.
func (g *Gateway) leadsBack(sent []byte) bool {
	if len(sent) < 2 {
		return false
	}
	if sent[0] == 5 && len(sent) > 2+int(sent[1]) { // a SOCKS5 greeting, and more behind it
		sent = sent[2+int(sent[1]):]
	}
	if sent[0] == 1 {
		return g.ownSOCKS(sent[1:])
	}
	for line := range bytes.Lines(sent) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !bytes.EqualFold(name, []byte("Proxy-Authorization")) {
			continue
		}
		scheme, text, _ := bytes.Cut(bytes.TrimSpace(value), []byte(" "))
		plain, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text)))
		user, password, _ := bytes.Cut(plain, []byte(":"))
		if err == nil && bytes.EqualFold(scheme, []byte("Basic")) && g.own(user, password) {
			return true
		}
	}
	return false
}

// ownSOCKS reports whether a message of RFC 1929, without its version, has a credential of
// this gateway.
func (g *Gateway) ownSOCKS(b []byte) bool {
	var part [2][]byte
	for i := range part {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return false
		}
		part[i], b = b[1:1+b[0]], b[1+int(b[0]):]
	}
	return g.own(part[0], part[1])
}

// own reports whether a credential is right: of any user name that authenticate takes, and of any key.
func (g *Gateway) own(user, password []byte) bool {
	u, ok := parseUser(string(user))
	return ok && (g.derived(g.cfg.OlderKeys, u, password) ||
		len(g.cfg.Key) > 0 && g.derived([][]byte{g.cfg.Key}, u, password))
}
