package domain_test

import (
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/recharge"
	"agentproxy/domain/replacement"
	"agentproxy/domain/session"
)

var machineStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// edges is a set of transitions, each written "from --> to".
type edges map[string]bool

func (e edges) add(from, to string) { e[from+" --> "+to] = true }

// TestDrawingsShowTheStateMachines compares each drawing of the page with the
// transitions that the code makes.
func TestDrawingsShowTheStateMachines(t *testing.T) {
	page, err := os.ReadFile("../docs/state-machines.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, want := range map[string]edges{
		"Session": sessionEdges(), "Recharge order": rechargeEdges(), "Provider order": providerEdges(),
		"Replacement": replacementEdges(), "Address of a static session": addressEdges(),
	} {
		_, section, _ := strings.Cut(string(page), "\n## "+heading+"\n")
		_, drawing, _ := strings.Cut(section, "```mermaid\n")
		drawing, _, _ = strings.Cut(drawing, "```")
		got := edges{}
		for _, m := range regexp.MustCompile(`(?m)^ *(\w+) --> (\w+)`).FindAllStringSubmatch(drawing, -1) {
			got.add(m[1], m[2])
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: drawn %q\nmade %q", heading, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

// TestThePageHasEveryReasonOfAnEnd compares the reasons of the page with those of the code.
func TestThePageHasEveryReasonOfAnEnd(t *testing.T) {
	page, err := os.ReadFile("../docs/state-machines.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("session/session.go")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "| Reason | Status | Because |")
	part, _, _ = strings.Cut(part, "\n\n")
	listed, known := []string{}, []string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(part, -1) {
		listed = append(listed, m[1])
	}
	for _, m := range regexp.MustCompile(`Reason = "([a-z_]+)"`).FindAllStringSubmatch(string(code), -1) {
		known = append(known, m[1])
	}
	slices.Sort(listed)
	slices.Sort(known)
	if len(known) == 0 || !slices.Equal(listed, known) {
		t.Errorf("the page lists %q, the code has %q", listed, known)
	}
}

func sessionEdges() edges {
	now, made := machineStart.Add(time.Hour), edges{}
	exit := session.Exit{IP: netip.MustParseAddr("127.0.0.2")}
	for _, from := range []session.Status{session.Creating, session.Active, session.Terminated, session.Expired, session.Failed} {
		for _, typ := range []session.Type{session.Dynamic, session.Static} {
			s := session.Session{Type: typ, Status: from, Days: 30, ExpiresAt: now.Add(time.Hour)}
			note := func(after session.Session, err error) {
				if err == nil {
					made.add(string(from), string(after.Status))
				}
			}
			note(s.Activate([]session.Exit{exit}, now))
			note(s.Fail(session.Failure{}, now))
			note(s.Rotate(exit, now))
			note(s.Renew(30, now))
			note(s.Extend(30))
			note(s.Expire(session.TimeExpired, now))
			if after, changed := s.Terminate(session.AgentRequest, now); changed {
				note(after, nil)
			}
		}
	}
	return made
}

// replacementEdges decides a replacement in every state, with another address and without.
func replacementEdges() edges {
	made := edges{}
	for _, from := range replacement.Statuses {
		for _, by := range []netip.Addr{{}, netip.MustParseAddr("127.0.0.2")} {
			if r, err := (replacement.Replacement{Status: from}).Decide(by, machineStart); err == nil {
				made.add(string(from), string(r.Status))
			}
		}
	}
	return made
}

// addressEdges replaces, takes over and ends an address in either state.
func addressEdges() edges {
	name := map[bool]string{false: "live", true: "ended"}
	made, other := edges{}, netip.MustParseAddr("127.0.0.9")
	for _, from := range []bool{false, true} {
		s := session.Session{Type: session.Static, Status: session.Active, ActivatedAt: machineStart,
			ExpiresAt: machineStart.Add(30 * session.Day),
			Exits:     []session.Exit{{IP: netip.MustParseAddr("127.0.0.2"), Ended: from}, {IP: netip.MustParseAddr("127.0.0.3")}}}
		i := s.IndexOf(s.Exits[0].IP)
		if after, changed := s.TakeOver([]session.Exit{{IP: other}, s.Exits[1]}); changed {
			made.add(name[from], name[after.Exits[0].Ended])
		}
		if i < 0 {
			continue
		}
		if after, err := s.ReplaceExit(i, other); err == nil {
			made.add(name[from], name[after.Exits[0].Ended])
		}
		if after, _, _, err := s.EndExit(i, machineStart); err == nil {
			made.add(name[from], name[after.Exits[0].Ended])
		}
	}
	return made
}

// rechargeEdges settles an order in every state with every sort of transfer,
// before and after its window closes.
func rechargeEdges() edges {
	made := edges{}
	const amount = 10 * domain.Dollar
	for _, from := range recharge.Statuses {
		for _, received := range []domain.Money{0, amount / 2, amount} {
			if (received == amount) != (from == recharge.Paid) || received > 0 && from == recharge.Pending {
				continue // not a state that an order can have
			}
			o := recharge.NewOrder("PAY1", "agt_1", "net", "T", amount, machineStart)
			o.Status, o.Received = from, received
			for _, through := range []time.Time{machineStart.Add(time.Minute), o.ExpiresAt.Add(time.Minute)} {
				for _, paid := range []domain.Money{0, amount / 4, amount} {
					transfer := recharge.Transfer{Amount: paid, Block: 1, BlockTime: through}
					var some []recharge.Transfer
					if paid > 0 {
						some = append(some, transfer)
					}
					for _, out := range []recharge.Settlement{
						recharge.Settle([]recharge.Order{o}, some, nil, through),
						recharge.Settle([]recharge.Order{o}, nil, some, through),
					} {
						for _, after := range out.Orders {
							if after.Status != from {
								made.add(string(from), string(after.Status))
							}
						}
					}
				}
			}
		}
	}
	return made
}

func providerEdges() edges {
	now, made := machineStart, edges{}
	for _, from := range []procurement.Status{procurement.Planned, procurement.Sent, procurement.Confirmed,
		procurement.Refused, procurement.Unknown} {
		o := procurement.Order{ID: "ord_1", Status: from, SentAt: now}
		note := func(after procurement.Order, err error) {
			if err == nil {
				made.add(string(from), string(after.Status))
			}
		}
		note(o.Send(procurement.Snapshot{}, now))
		note(o.Confirm(procurement.Delivery{Ref: "r", State: procurement.Live}, now))
		note(o.Refuse(procurement.OutOfStock, "", now))
		note(o.MarkUnknown("", now))
	}
	return made
}
