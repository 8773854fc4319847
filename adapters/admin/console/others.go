package console

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"agentproxy/domain"
	"agentproxy/domain/exitlog"
)

// jobs shows jobs that failed every time.
func (c *Console) jobs(r *http.Request) (page, error) {
	p := page{Title: "Parked jobs"}
	list, err := c.Jobs.Parked(r.Context(), 100)
	t := &table{Columns: []string{"Job", "Kind", "Subject", "Attempts", "Last run", "Error", "Decide"},
		Empty: "No job is parked."}
	for _, j := range list {
		id := strconv.FormatInt(j.ID, 10)
		t.Rows = append(t.Rows, row{ID: "job-" + id, Cells: []cell{text(id), text(j.Kind), text(j.Subject),
			text(fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts)), when(j.ScheduledAt), text(j.Error),
			{Links: []button{do("jobs-retry", "run again", id, false), do("jobs-discard", "remove", id, true)}}}})
	}
	p.Sections = []section{{Note: "They failed in every attempt and run no more by themselves; kept for 30 days.",
		Table: t}}
	return p, err
}

// exits shows look-ups and holds of the log of exits.
func (c *Console) exits(r *http.Request) (page, error) {
	p := page{Title: "Who used an exit"}
	looks, err := c.Exits.Lookups(r.Context(), 50)
	if err != nil {
		return p, err
	}
	holds, err := c.Exits.Holds(r.Context())
	if err != nil {
		return p, err
	}
	t := &table{Columns: []string{"When", "By", "Why", "Exit", "Used at", "Target", "Found"},
		Empty: "Nothing was looked up yet."}
	for _, l := range looks {
		t.Rows = append(t.Rows, row{ID: "lookup-" + l.ID, Cells: []cell{when(l.At), text(l.Operator), text(l.Reason),
			text(netip.AddrPortFrom(l.Query.Exit,
				l.Query.Port).String()), when(l.Query.At), text(l.Query.Target), number(l.Found)}})
	}
	h := &table{Columns: []string{"Hold", "From", "Until before", "By", "Why", "Ended", "Decide"},
		Empty: "No day is held."}
	for _, x := range holds {
		end := cell{Text: "–"}
		if x.EndedAt.IsZero() {
			end = cell{Links: []button{do("exits-release", "end it", x.ID, true)}}
		}
		h.Rows = append(h.Rows, row{ID: "hold-" + x.ID, Cells: []cell{text(x.ID), when(x.From), when(x.To),
			text(x.Operator), text(x.Reason),
			when(x.EndedAt), end}})
	}
	p.Sections = []section{{Note: "Each look-up is kept with who asked and why.",
		Links: []button{{Text: "Look up an exit", Href: "/do/exits-lookup"}, {Text: "Hold days",
			Href: "/do/exits-hold"}}},
		{Title: "Look-ups", Table: t}, {Title: "Held from deletion", Table: h}}
	return p, nil
}

// foundTable shows connections.
func foundTable(list []exitlog.Connection) *table {
	t := &table{Columns: []string{"Agent", "Session", "Client", "Host", "Target", "Exit", "Opened", "Closed",
		"Bytes"}}
	for _, f := range list {
		t.Rows = append(t.Rows, row{Cells: []cell{link(f.Agent, "/agents/"), link(f.Session, "/sessions/"),
			endpoint(f.Client), text(f.Host),
			endpoint(f.Target), endpoint(f.Exit), when(f.Opened), when(f.Closed), number(f.Bytes)}})
	}
	return t
}

func endpoint(a netip.AddrPort) cell {
	if !a.Addr().IsValid() {
		return cell{Text: "–"}
	}
	return text(a.String())
}

// policy judges a target by the rules that hold now.
func (c *Console) policy(r *http.Request) (page, error) {
	p, q := page{Title: "Policy about targets"}, r.URL.Query()
	rules := c.Policy()
	facts := []figure{{Name: "Rules of the operator", ID: "operator-rules", Value: text("none")},
		{Name: "Products with rules", ID: "product-rules", Value: text("none")}}
	if rules != nil && rules.Operator != nil {
		facts[0].Value = text("yes")
	}
	if rules != nil && len(rules.Products) > 0 {
		facts[1].Value = number(len(rules.Products))
	}
	s := section{Title: "Is a target denied?", Filter: []field{given(r, "host", "Host or address"), given(r, "port",
		"Port"), given(r, "product", "Product")}}
	p.Sections = []section{{Facts: facts,
		Note: "The rules are in the configuration file; kill -HUP reads them again."}, s}
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
		Note: "A name is judged here; the addresses that it has are judged when it is reached."}
	if d.Refuses() {
		verdict.Value, verdict.Note = cell{Text: "denied", Tag: "bad"}, fmt.Sprintf("by the %s's rule %s", d.Layer,
			d.Rule)
	}
	p.Sections[1].Facts = []figure{verdict}
	return p, nil
}
