package webshare

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"agentproxy/adapters/upstream/list"
	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
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

var _ list.Exchanger = replacing{}

// refusedFor is the pause after a replacement that the seller refused, or could not make.
const refusedFor = time.Hour

// Replace has lines replaced that are sold and fail, by proxies of the same country. It
// begins one replacement at a time and asks for its state until it is decided. A line whose
// replacement may be under way is not asked for again within an hour.
func (r replacing) Replace(ctx context.Context, lines []list.Line) error {
	r.mu.Lock()
	open, wait := r.open, r.report["replacements"] == 0 || r.now().Sub(r.refused) < refusedFor
	next := slices.IndexFunc(lines, func(l list.Line) bool { return r.now().Sub(r.asked[l.Key()]) >= refusedFor })
	r.mu.Unlock()
	switch {
	case open != 0:
		return r.poll(ctx, open)
	case wait || next < 0:
		return nil
	}
	return r.requestReplacement(ctx, lines[next], lines[next].Country)
}

// CanExchange reports whether the plan has replacements left, as of the last load. Whether the
// seller has a proxy to give is known once it was asked.
func (r replacing) CanExchange() procurement.Stock {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report != nil && r.report["replacements"] == 0 {
		return procurement.StockNo
	}
	return procurement.StockUnknown
}

// Exchange has a line replaced. The seller makes one replacement at a time: meanwhile it fails
// with Temporary for another line, and is done already for the same one. A request that is sent
// again after an unknown outcome replaces nothing twice, because it names the address, which is
// gone then.
func (r replacing) Exchange(ctx context.Context, old list.Line, place session.Location) error {
	busy := procurement.Refuse(procurement.Temporary, "the seller is replacing another proxy")
	if place.City != "" {
		return procurement.Refuse(procurement.Unsupported, "the seller replaces by country, not by city")
	}
	if !r.turn.TryLock() {
		return busy
	}
	defer r.turn.Unlock()
	r.mu.Lock()
	open, key := r.open, r.openKey
	r.mu.Unlock()
	if open != 0 {
		if key == old.Key() {
			return nil
		}
		if err := r.poll(ctx, open); err != nil {
			return procurement.Refuse(procurement.Temporary, procurement.ReasonOf(err))
		}
		r.mu.Lock()
		open = r.open
		r.mu.Unlock()
		if open != 0 {
			return busy
		}
	}
	err := r.requestReplacement(ctx, old, cmp.Or(place.Country, old.Country))
	if procurement.ClassOf(err) == procurement.Conflict {
		return busy
	}
	return err
}

// requestReplacement begins a replacement of a line by a proxy of a country, or of any.
func (r replacing) requestReplacement(ctx context.Context, l list.Line, country string) error {
	with := map[string]any{"type": "any", "count": 1}
	if country != "" {
		with = map[string]any{"type": "country", "country_code": country, "count": 1}
	}
	var made state
	err := r.api.Call(ctx, rest.Once, http.MethodPost, "/v3/proxy/replace/"+r.query(), map[string]any{
		"to_replace": map[string]any{"type": "ip_address", "ip_addresses": []string{l.Host}}, "replace_with": []any{with},
		"dry_run": false}, &made)
	if err == nil && made.ID == 0 {
		err = procurement.Refuse(procurement.Ambiguous, "the answer is not of a shape that is known")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch procurement.ClassOf(err) {
	case "":
		r.open, r.openKey, r.asked[l.Key()] = made.ID, l.Key(), r.now()
	case procurement.Conflict: // another one is under way
	case procurement.Ambiguous: // it may be under way; the list will show it
		r.asked[l.Key()] = r.now()
	default:
		r.refused = r.now()
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
func (r replacing) poll(ctx context.Context, id int64) error {
	var now state
	err := r.api.Call(ctx, rest.Safely, http.MethodGet, "/v3/proxy/replace/"+strconv.FormatInt(id, 10)+"/"+r.query(), nil,
		&now)
	if procurement.ClassOf(err) == procurement.NotFound {
		now.State, err = "failed", nil
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch now.State {
	case "completed":
		r.open, r.next = 0, time.Time{}
	case "failed":
		reason := ""
		if now.ErrorCode != nil {
			reason = rest.OneLine(*now.ErrorCode)
		}
		r.log.Warn("the seller could not replace a proxy", "provider", r.api.Name, "reason", reason)
		r.open, r.refused = 0, r.now()
		delete(r.asked, r.openKey)
	}
	return nil
}
