package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/domain/exitlog"
	"agentproxy/domain/policy"
)

// jobStates are the states of jobs and what the page calls them.
var jobStates = []option{{Value: Parked, Text: "parked"}, {Value: "retryable", Text: "to be run again"},
	{Value: "running", Text: "running"}, {Value: "available", Text: "waiting"},
	{Value: "scheduled", Text: "scheduled"}, {Value: "completed", Text: "completed"}, {Value: "any", Text: "any"}}

// jobs shows background jobs; without a filter those that failed every time.
func (c *Console) jobs(r *http.Request) (page, error) {
	p, q := page{Title: "Jobs"}, r.URL.Query()
	chosen := cmp.Or(q.Get("state"), Parked)
	states, words, state := field{Name: "state", Label: "State"}, map[string]string{}, ""
	for _, o := range jobStates {
		o.Chosen = o.Value == chosen
		if o.Chosen && o.Value != "any" {
			state = o.Value
		}
		states.Options, words[o.Value] = append(states.Options, o), o.Text
	}
	list, err := c.use.Jobs.List(r.Context(), state, q.Get("kind"), 100)
	t := &table{Columns: []string{"Job", "Kind", "State", "Subject", "Attempts", "Last run", "Error", "Decide"},
		Empty: "No job is " + words[cmp.Or(state, Parked)] + "."}
	for _, j := range list {
		id := strconv.FormatInt(j.ID, 10)
		decide := cell{Text: "–"}
		if j.State != "running" && j.State != "completed" {
			decide = cell{Links: []button{do("jobs-retry", "run again", id), doDanger("jobs-discard", "remove", id)}}
		}
		tag := cell{Text: cmp.Or(words[j.State], j.State), Tag: map[string]string{Parked: "bad", "retryable": "warn",
			"completed": "good"}[j.State]}
		t.Rows = append(t.Rows, row{ID: "job-" + id, Cells: []cell{text(id), text(j.Kind), tag, text(j.Subject),
			text(fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts)), when(j.ScheduledAt), text(j.Error), decide}})
	}
	p.Sections = []section{{Note: "Parked jobs failed in every attempt and run no more by themselves; they are kept for " +
		"30 days. At most 100 are shown.", Filter: []field{states, given(r, "kind", "Kind")}, Table: t}}
	return p, err
}

// exits shows look-ups and holds of the log of exits.
func (c *Console) exits(r *http.Request) (page, error) {
	p := page{Title: "Who used an exit"}
	looks, err := c.use.Exits.Lookups(r.Context(), 50)
	if err != nil {
		return p, err
	}
	holds, err := c.use.Exits.Holds(r.Context())
	if err != nil {
		return p, err
	}
	t := &table{Columns: []string{"When", "By", "Why", "Exit", "Used at", "Target", "Client",
		"Agent", "Seller", "Found"},
		Empty: "Nothing was looked up yet."}
	for _, l := range looks {
		t.Rows = append(t.Rows, row{ID: "lookup-" + l.ID, Cells: []cell{when(l.At), text(l.Operator), text(l.Reason),
			endpoint(netip.AddrPortFrom(l.Query.Exit, l.Query.Port)), when(l.Query.At), text(l.Query.Target),
			endpoint(netip.AddrPortFrom(l.Query.Client, 0)), text(l.Query.Agent),
			text(strings.TrimSpace(l.Query.Seller + " " + l.Query.Token)), number(l.Found)}})
	}
	h := &table{Columns: []string{"Hold", "First day", "Last day", "By", "Why", "Ended", "Decide"},
		Empty: "No day is held."}
	for _, x := range holds {
		end := cell{Text: "–"}
		if x.EndedAt.IsZero() {
			end = cell{Links: []button{doDanger("exits-release", "end it", x.ID)}}
		}
		h.Rows = append(h.Rows, row{ID: "hold-" + x.ID, Cells: []cell{text(x.ID), text(x.From.Format(time.DateOnly)),
			text(x.To.Add(-time.Second).Format(time.DateOnly)),
			text(x.Operator), text(x.Reason),
			when(x.EndedAt), end}})
	}
	p.Sections = []section{{Note: "Each look-up is kept with who asked and why.",
		Links: []button{{Text: "Look up an exit", Href: "/do/exits-lookup"}, {Text: "Hold days",
			Href: "/do/exits-hold"}, {Text: "Quality by source", Href: "/exits/quality"}}},
		{Title: "Look-ups", Table: t}, {Title: "Held from deletion", Table: h}}
	return p, nil
}

// exitQuality counts the exits that agents use by source and country as sold. What is bad is marked.
func (c *Console) exitQuality(r *http.Request) (page, error) {
	p := page{Title: "Quality of exits"}
	list, err := c.use.Sessions.Exits(r.Context())
	if err != nil {
		return p, err
	}
	t := &table{Columns: []string{"Source", "Sold as", "Exits", "Measured", "In another place", "On a list", "Oldest",
		"Replaced", "Ended", "Fees", "Refunds"},
		Empty: "No exit was measured: exit_facts names no source, or nothing is in use."}
	var all exit.Quality
	for _, q := range list {
		all.Exits, all.Measured = all.Exits+q.Exits, all.Measured+q.Measured
		all.Differing, all.Listed = all.Differing+q.Differing, all.Listed+q.Listed
		all.Replaced, all.Fees = all.Replaced+q.Replaced, all.Fees+q.Fees
		all.Ended, all.Refunds = all.Ended+q.Ended, all.Refunds+q.Refunds
		t.Rows = append(t.Rows, row{ID: "quality-" + q.Source + "-" + q.Declared, Cells: []cell{
			link(q.Source, "/sellers/"), text(q.Declared), number(q.Exits), number(q.Measured), alarm(q.Differing),
			alarm(q.Listed), when(q.OldestAt), number(q.Replaced), number(q.Ended), usd(q.Fees), usd(q.Refunds)}})
	}
	p.Sections = []section{{Figures: []figure{
		{Name: "Exits", ID: "exits", Value: number(all.Exits)},
		{Name: "Measured", ID: "measured", Value: number(all.Measured)},
		{Name: "In another place", ID: "differing", Value: alarm(all.Differing)},
		{Name: "On a list", ID: "listed", Value: alarm(all.Listed)},
		{Name: "Replaced", ID: "replaced", Value: number(all.Replaced)},
		{Name: "Ended", ID: "ended", Value: number(all.Ended)},
		{Name: "Fees", ID: "fees", Value: usd(all.Fees)},
		{Name: "Refunds", ID: "refunds", Value: usd(all.Refunds)}}},
		{Title: "By source and country as sold", Table: t, Note: "Of sessions that live: what was measured last, and how " +
			"many were at least once in another place than the one sold. Of all sessions: which addresses agents gave back, " +
			"for another one or for a refund. agentproxy exits quality prints the same."}}
	return p, nil
}

// foundTable shows connections.
func foundTable(list []exitlog.Connection) *table {
	t := &table{Columns: []string{"Agent", "Session", "Worker", "Client", "Host", "Target", "Exit", "Seller", "Opened",
		"Closed", "Bytes"}}
	for _, f := range list {
		t.Rows = append(t.Rows, row{Cells: []cell{link(f.Agent, "/agents/"), link(f.Session, "/sessions/"),
			text(f.Worker), endpoint(f.Client), text(f.Host),
			endpoint(f.Target), endpoint(f.Exit), text(strings.TrimSpace(f.Seller + " " + f.Token)),
			when(f.Opened), when(f.Closed), number(f.Bytes)}})
	}
	return t
}

func endpoint(a netip.AddrPort) cell {
	if !a.Addr().IsValid() {
		return cell{Text: "–"}
	}
	if a.Port() == 0 {
		return text(a.Addr().String())
	}
	return text(a.String())
}

// mostRules is how many rules of each list a page has.
const mostRules = 200

// ruleSections lists the rules that hold now, those of the operator first.
func ruleSections(rules *policy.Shared) []section {
	var shared policy.Shared
	if rules != nil {
		shared = *rules
	}
	of := func(title, id string, r *policy.Rules) section {
		l := r.List(mostRules)
		s := section{Title: title, ID: id, Facts: []figure{
			{Name: "Denied", ID: id + "-deny", Value: text(cmp.Or(strings.Join(l.Deny, ", "), "nothing"))},
			{Name: "Allowed", ID: id + "-allow", Value: text(cmp.Or(strings.Join(l.Allow, ", "), "what is not denied"))},
			{Name: "Ports", ID: id + "-ports", Value: text(cmp.Or(strings.Join(l.Ports, ", "), "what is not denied"))}}}
		if l.More > 0 {
			s.Note = fmt.Sprintf("%d more rules are not listed.", l.More)
		}
		return s
	}
	list := []section{of("Rules of the operator", "operator-rules", shared.Operator)}
	list[0].Note = strings.TrimSpace("They are in the configuration file; kill -HUP reads them again. " + list[0].Note)
	if shared.Trial != nil {
		list = append(list, of("Rules for accounts on trial", "trial-rules", shared.Trial))
	}
	for _, no := range slices.Sorted(maps.Keys(shared.Products)) {
		list = append(list, of("Rules of the product "+no, "rules-"+no, shared.Products[no]))
	}
	return list
}

// policy checks a target by the rules that hold now.
func (c *Console) policy(r *http.Request) (page, error) {
	p, q := page{Title: "Policy about targets"}, r.URL.Query()
	rules := c.use.Policy.Now()
	s := section{Title: "Is a target denied?", Filter: []field{given(r, "host", "Host or address"), given(r, "port",
		"Port"), given(r, "product", "Product")}}
	p.Sections = append([]section{s}, ruleSections(rules)...)
	host := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(q.Get("host")), "."))
	if host == "" {
		return p, nil
	}
	port, err := strconv.ParseUint(q.Get("port"), 10, 16)
	if q.Get("port") == "" {
		port, err = 443, nil
	}
	if err != nil || port == 0 {
		return p, domain.InvalidField("port", "must be 1 to 65535")
	}
	layers := rules.Layers(q.Get("product"), nil, false)
	addr, wrong := netip.ParseAddr(host)
	name := host
	if wrong == nil {
		name = ""
	}
	d := layers.Name(name, uint16(port))
	if !d.Refuses() && wrong == nil {
		d = layers.Address("", addr)
	}
	verdict := figure{Name: fmt.Sprintf("%s, port %d", host, port), ID: "verdict", Value: cell{Text: "not denied",
		Tag: "good"},
		Note: "A name is checked here; the addresses that it has are checked when it is reached."}
	if d.Refuses() {
		verdict.Value, verdict.Note = cell{Text: "denied", Tag: "bad"}, fmt.Sprintf("by the %s's rule %s", d.Layer,
			d.Rule)
	}
	p.Sections[0].Facts = []figure{verdict}
	return p, nil
}
