package proxyseller

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// replacement is a request to replace an address that was submitted and is not handled yet.
type replacement struct {
	polls int // of proxy/list until it is handled; below 0: not by itself
	never bool
}

// replaceTypes are the documented reasons. CUSTOM needs a comment.
var replaceTypes = []string{"NOT_WORK", "INCORRECT_LOCATION", "CANT_CHANGE_NETWORK", "LOW_SPEED", "CUSTOM"}

// replaceBody is the request of proxy/replace.
type replaceBody struct {
	IDs     []string `json:"ids"`
	Type    string   `json:"type"`
	Comment string   `json:"comment"`
}

// replace serves proxy/replace: it submits requests that are handled later. The type is the reason. One request a day
// is documented for an address, and a quota for a month; how both are refused is not.
func (s *Server) replace(r *http.Request) string {
	var b replaceBody
	if !read(r, &b) || len(b.IDs) == 0 {
		return unknownError()
	}
	kind := strings.ToUpper(b.Type)
	if !slices.Contains(replaceTypes, kind) {
		return failure(fault{"Set coorect type: " + strings.Join(replaceTypes, " / "), 0})
	}
	if kind == "CUSTOM" && strings.TrimSpace(b.Comment) == "" {
		return failure(fault{"Set comment", 503})
	}
	var found []*proxy
	ips := []string{}
	for _, o := range s.orders {
		for _, p := range o.proxies {
			if slices.Contains(b.IDs, p.id) {
				found, ips = append(found, p), append(ips, p.addr.String())
			}
		}
	}
	if len(found) != len(b.IDs) {
		return failure(fault{"IP not found", 0}) // as proxy/comment/set
	}
	if slices.ContainsFunc(found, func(p *proxy) bool { return time.Now().Before(p.again) }) {
		return failure(fault{"You can request IP replacement once per day", 0}) // invented
	}
	if s.replacements < len(found) {
		return failure(fault{"Replacement limit reached", 0}) // invented
	}
	for _, p := range found {
		p.again, p.replacement = time.Now().Add(24*time.Hour), &replacement{polls: s.replacing, never: s.neverReplaces}
	}
	s.replacements -= len(found)
	s.neverReplaces = false
	return success(map[string]any{"ok": map[string]any{"ips": ips, "msg": "Replacement request submitted"}})
}

// handle gives an address that was asked for another one, with a new id; its place in the order and its end stay. That
// the id changes is invented. Without stock the request stays open.
func (s *Server) handle(o *order, p *proxy) {
	if p.replacement == nil || p.replacement.never || s.stock[o.country] < 1 {
		return
	}
	if p.host == p.addr.String() {
		p.host = ""
	}
	s.stock[o.country]--
	p.id, p.addr, p.replacement = objectID(time.Now().UTC(), s.next()), s.address(), nil
	if p.host == "" {
		p.host = p.addr.String()
	}
}

// pollReplacements counts a poll of an order.
func (s *Server) pollReplacements(o *order) {
	for _, p := range o.proxies {
		switch {
		case p.replacement == nil || p.replacement.polls < 0:
		case p.replacement.polls > 0:
			p.replacement.polls--
		default:
			s.handle(o, p)
		}
	}
}

// SetReplacing sets the number of polls until a request for a replacement is handled; below 0 it is not handled by
// itself.
func (s *Server) SetReplacing(polls int) { s.locked(func() { s.replacing = polls }) }

// SetReplacements sets how many addresses may still be replaced in this month.
func (s *Server) SetReplacements(n int) { s.locked(func() { s.replacements = n }) }

// NeverReplace lets the next request for a replacement be accepted and never handled.
func (s *Server) NeverReplace() { s.locked(func() { s.neverReplaces = true }) }

// CompleteReplacements handles every request for a replacement, as the seller does after an hour.
func (s *Server) CompleteReplacements() {
	s.locked(func() {
		for _, o := range s.orders {
			for _, p := range o.proxies {
				s.handle(o, p)
			}
		}
	})
}

// SetUptime marks the addresses of an order as sold with 100% uptime, which are not replaced.
func (s *Server) SetUptime(ref string) {
	s.locked(func() {
		for _, o := range s.orders {
			for _, p := range o.proxies {
				p.uptime = p.uptime || o.number == ref
			}
		}
	})
}
