package webshare

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"agentproxy/test/fake/seller"
)

func (s *Server) replace(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ToReplace struct {
			Type      string   `json:"type"`
			Addresses []string `json:"ip_addresses"`
		} `json:"to_replace"`
		ReplaceWith []struct {
			Type    string `json:"type"`
			Country string `json:"country_code"`
			Count   int    `json:"count"`
		} `json:"replace_with"`
		DryRun bool `json:"dry_run"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.ToReplace.Type != "ip_address" || len(in.ReplaceWith) != 1 ||
		in.ReplaceWith[0].Type != "any" && in.ReplaceWith[0].Type != "country" {
		refuse(w, 400, "invalid", "Your proxy list is not editable")
		return
	}
	for _, t := range s.tasks {
		if t.State != "completed" && t.State != "failed" {
			refuse(w, 400, "active_replacement", "You are already replacing a proxy. Please wait a moment and try again.")
			return
		}
	}
	if s.left < len(in.ToReplace.Addresses) {
		refuse(w, 400, "not_enough_replacements_in_subscription", fmt.Sprintf("You have %d proxy replacements remaining.", s.left))
		return
	}
	t := &task{ID: 98315 + len(s.tasks), State: "validating", DryRun: in.DryRun, addresses: in.ToReplace.Addresses, country: in.ReplaceWith[0].Country}
	s.tasks = append(s.tasks, t)
	if s.odd {
		s.odd = false
		seller.Answer(w, 201, map[string]any{})
		return
	}
	seller.Answer(w, 201, t)
}

// step takes a replacement one step on. A dry run replaces nothing; one that finds nothing to replace, or nothing to
// replace it with, fails.
func (s *Server) step(t *task) {
	fail := func(code string) { t.State, t.ErrorCode, t.Error = "failed", &code, &code }
	switch {
	case s.held:
	case t.State == "validating":
		t.State = "processing"
	case t.State == "processing" && s.fail != "":
		fail(s.fail)
		s.fail = ""
	case t.State == "processing":
		t.State = "completed"
		for _, a := range t.addresses {
			switch {
			case t.DryRun:
			case !s.has(a):
				fail("no_proxies_to_be_replaced")
			case s.exchange(a, t.country, "proxy_replaced"):
				s.left--
			default:
				fail("proxies_removed_doesnt_match_added")
			}
		}
	}
}

// has reports whether the list has an address.
func (s *Server) has(address string) bool {
	return slices.ContainsFunc(s.proxies, func(p Proxy) bool { return p.ProxyAddress != nil && *p.ProxyAddress == address })
}

// Hold keeps replacements from going on, or lets them.
func (s *Server) Hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = on
}

// SetReplacements sets how many replacements the plan has left.
func (s *Server) SetReplacements(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = n
}

// state answers with a replacement, which goes one step on with each call.
func (s *Server) state(w http.ResponseWriter, r *http.Request) {
	for _, t := range s.tasks {
		if strconv.Itoa(t.ID) != r.PathValue("id") {
			continue
		}
		s.step(t)
		seller.Answer(w, 200, t)
		return
	}
	refuse(w, 404, "not_found", "Not found.")
}

// Begin begins a replacement that another program asks for.
func (s *Server) Begin(addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, &task{ID: 98315 + len(s.tasks), State: "validating", addresses: addresses})
}

// AnswerOddly answers the next replacement by an object without its fields.
func (s *Server) AnswerOddly() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odd = true
}
