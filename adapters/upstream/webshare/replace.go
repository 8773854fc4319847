package webshare

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"agentproxy/adapters/upstream/list"
	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
)

// replacement is a proxy that another one has come in place of, for a reason of the
// seller or by a call.
type replacement struct {
	Reason  string `json:"reason"`
	Old     string `json:"proxy"`
	OldPort uint16 `json:"proxy_port"`
	New     string `json:"replaced_with"`
	NewPort uint16 `json:"replaced_with_port"`
}

// follow notes which lines came in place of others. A replaced proxy is named by address
// and port; the user name is that of any proxy of the account.
func (s *source) follow(lines []list.Line, replaced []replacement) {
	users := map[string]bool{}
	hosts := map[string]string{}
	for _, l := range lines {
		users[l.User] = true
		hosts[l.Key()] = l.Host
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(replaced) - 1; i >= 0; i-- { // the oldest first
		r := replaced[i]
		for user := range users {
			from := list.Line{Host: r.Old, Port: r.OldPort, User: user}.Key()
			to := list.Line{Host: r.New, Port: r.NewPort, User: user}.Key()
			if s.hosts[from] != "" && s.moved[from] != to {
				s.log.Warn("the seller replaced a proxy", "provider", s.api.Name, "reason", rest.OneLine(r.Reason), "proxy", r.Old,
					"by", r.New)
			}
			s.moved[from] = to
		}
	}
	s.hosts = hosts
}

// MovedTo returns the line in place of one, over several replacements.
func (s *source) MovedTo(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, ok := s.moved[key]
	for range 10 {
		next, more := s.moved[to]
		if !more || s.hosts[to] != "" {
			break
		}
		to = next
	}
	return to, ok
}

// account reads the plan and its usage.
func (s *source) account(ctx context.Context) error {
	plans, err := all[struct {
		ID           int64   `json:"id"`
		Status       string  `json:"status"`
		Bandwidth    float64 `json:"bandwidth_limit"` // GB; 0: unlimited
		Count        int     `json:"proxy_count"`
		Replacements int     `json:"proxy_replacements_available"`
	}](ctx, s, "/v2/subscription/plan/", 1)
	if err != nil {
		return err
	}
	var subscription struct {
		Start time.Time `json:"start_date"`
	}
	if err := s.api.Call(ctx, rest.Safely, http.MethodGet, "/v2/subscription/"+s.query(), nil, &subscription); err != nil {
		return err
	}
	var used struct {
		Bytes int64 `json:"bandwidth_total"`
	}
	q := s.query("timestamp__gte", subscription.Start.UTC().Format(time.RFC3339))
	if subscription.Start.IsZero() {
		q = s.query()
	}
	if err := s.api.Call(ctx, rest.Safely, http.MethodGet, "/v2/stats/aggregate/"+q, nil, &used); err != nil {
		return err
	}
	report := map[string]int{"used_mb": int(used.Bytes / 1e6)}
	for _, p := range plans {
		if p.Status != "active" || s.plan != "" && strconv.FormatInt(p.ID, 10) != s.plan {
			continue
		}
		report["plan"], report["replacements"] = p.Count, p.Replacements
		if p.Bandwidth > 0 {
			report["left_mb"] = max(0, int(p.Bandwidth*1e3)-report["used_mb"])
		}
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report = report
	return nil
}

// Report returns the plan's proxies and replacements, and its traffic in MB, as of the
// last load.
func (s *source) Report() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

// replacing is a source that replaces proxies at the seller.
type replacing struct{ *source }

// refusedFor is the pause after a replacement that the seller refused.
const refusedFor = time.Hour

// Replace has lines replaced that are sold and fail, by proxies of the same country. It
// begins one replacement at a time and asks for its state until it is decided. A line whose
// replacement may be under way is not asked for again.
func (s replacing) Replace(ctx context.Context, lines []list.Line) error {
	s.mu.Lock()
	open, wait := s.open, s.report["replacements"] == 0 || s.now().Sub(s.refused) < refusedFor
	next := slices.IndexFunc(lines, func(l list.Line) bool { return !s.asked[l.Key()] })
	s.mu.Unlock()
	switch {
	case open != 0:
		return s.poll(ctx, open)
	case wait || next < 0:
		return nil
	}
	l := lines[next]
	with := map[string]any{"type": "any", "count": 1}
	if l.Country != "" {
		with = map[string]any{"type": "country", "country_code": l.Country, "count": 1}
	}
	var made state
	err := s.api.Call(ctx, rest.Once, http.MethodPost, "/v3/proxy/replace/"+s.query(), map[string]any{
		"to_replace": map[string]any{"type": "ip_address", "ip_addresses": []string{l.Host}}, "replace_with": []any{with},
		"dry_run": false}, &made)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch procurement.ClassOf(err) {
	case "":
		s.open, s.openKey, s.asked[l.Key()] = made.ID, l.Key(), true
	case procurement.Conflict: // another one is under way
	case procurement.Ambiguous: // it may be under way; the list will show it
		s.asked[l.Key()] = true
	default:
		s.refused = s.now()
	}
	return err
}

// state is a replacement at the seller.
type state struct {
	ID        int64   `json:"id"`
	State     string  `json:"state"` // validating, validated, processing, completed or failed
	Error     *string `json:"error"`
	ErrorCode *string `json:"error_code"`
}

// poll asks for a replacement. Once it is decided the list is loaded again.
func (s replacing) poll(ctx context.Context, id int64) error {
	var now state
	err := s.api.Call(ctx, rest.Safely, http.MethodGet, "/v3/proxy/replace/"+strconv.FormatInt(id, 10)+"/"+s.query(), nil,
		&now)
	if procurement.ClassOf(err) == procurement.NotFound {
		now.State, err = "failed", nil
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now.State {
	case "completed":
		s.open, s.next = 0, time.Time{}
	case "failed":
		reason := ""
		if now.ErrorCode != nil {
			reason = rest.OneLine(*now.ErrorCode)
		}
		s.log.Warn("the seller could not replace a proxy", "provider", s.api.Name, "reason", reason)
		s.open, s.refused = 0, s.now()
		delete(s.asked, s.openKey)
	}
	return nil
}
