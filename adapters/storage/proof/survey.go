package proof

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/billing"
)

// Most rows break no rule. While the entries of a range of agents are walked, a survey sums them by session, and
// then it reads the hours and the sessions once. The rules that this shows to hold are not asked for the rows that
// break them; what it doubts, they find and name.

// mostSurveyed is how many sessions a survey keeps in memory. In a range with more the rules are asked.
const mostSurveyed = 100_000

// sessionSum is what a session holds, was charged and refunded.
type sessionSum struct {
	heldTrial, heldOwn, chargedTrial, chargedOwn, refundedTrial, refundedOwn int64
}

// sold is what the entries of a session have of it.
type sold struct {
	sum     sessionSum
	agent   string
	product string // as the entry describes it
	price   int64  // that was held at first, by that entry
	held    bool   // there is that entry
	entries bool   // there are any
	hours   used

	first usedDay // of its days, with what it used,
	later []usedDay

	begin, end int64 // of its hours with traffic or a charge,
	isUsed     bool  // if there is one
	counted    int64 // its last hour that is counted,
	isCounted  bool  // if there is one
}

// used is what hours sum up to.
type used struct{ up, down, connections, charged, refunded, recharged int64 }

func (u *used) add(o used) {
	u.up, u.down, u.connections = u.up+o.up, u.down+o.down, u.connections+o.connections
	u.charged, u.refunded, u.recharged = u.charged+o.charged, u.refunded+o.refunded, u.recharged+o.recharged
}

// hourOf is an hour of an agent, of a session or of all, or of those of sessions ("1") or not ("0") alone.
type hourOf struct {
	agent, of string
	hour      int64
}

// survey is what is known of the rules of a range of agents.
type survey struct {
	of      map[string]*sold
	room    []sold
	last    *sold // that was asked for, and its id
	lastID  string
	mixed   bool            // entries have more, or other, than a survey compares
	traffic bool            // was added, by an entry
	doubt   map[string]bool // by rule; of the others nothing is known

	agents map[string]agentSum
	moved  map[hourOf]used // refunds and recharges of hours less those of entries
	sums   map[hourOf]used // what is counted less the kept sums
	lasts  map[hourOf]int64
	ended  map[endedOf]int64

	open      map[agentDay]bool // not summed as their hours are
	delivered map[delivery]delivered
	terms     bool // a static session is served in process
	orders    bool // one names a session
}

// endedOf are the sessions that are counted together.
type endedOf struct{ agent, product, kind, status string }

func newSurvey() *survey {
	return &survey{of: map[string]*sold{}, doubt: map[string]bool{}, agents: map[string]agentSum{},
		moved: map[hourOf]used{}, sums: map[hourOf]used{}, lasts: map[hourOf]int64{}, ended: map[endedOf]int64{},
		open: map[agentDay]bool{}, delivered: map[delivery]delivered{}}
}

// session returns what is known of a session of an agent; nil if not everything is.
func (s *survey) session(agent, id string) *sold {
	if s.last != nil && s.lastID == id && s.last.agent == agent {
		return s.last
	}
	x := s.of[id]
	if x == nil {
		if len(s.room) == 0 {
			s.room = make([]sold, 512)
		}
		x, s.room = &s.room[0], s.room[1:]
		x.agent = agent
		s.of[id] = x
	}
	if x.agent != agent || len(s.of)+len(s.sums) > mostSurveyed {
		s.mixed = true
		s.of, s.room, s.moved, s.sums, s.last = nil, nil, nil, nil, nil
		return nil
	}
	s.last, s.lastID = x, id
	return x
}

// holds reports whether a rule is known to hold.
func (s *survey) holds(rule string) bool {
	doubted, known := s.doubt[rule]
	return known && !doubted
}

// add takes the next entry.
func (s *survey) add(e *entry) {
	if !s.mixed && (e.Type == string(billing.RefundEntry) || e.Type == string(billing.Recharge)) {
		k, moved := hourOf{e.AgentID, e.SessionID, e.At - e.At%3_600_000_000}, int64(e.Trial+e.Own)
		m := s.moved[k]
		if e.Type == string(billing.Recharge) {
			m.recharged -= moved
		} else {
			m.refunded -= moved
		}
		s.moved[k] = m
	}
	first, holds := strings.CutPrefix(e.Ref, "hold:")
	if s.mixed || e.SessionID == "" {
		s.mixed = s.mixed || holds
		return
	}
	x := s.session(e.AgentID, e.SessionID)
	if x == nil {
		return
	}
	x.entries = true
	sum := &x.sum
	sum.heldTrial, sum.heldOwn = sum.heldTrial+e.HeldTrial, sum.heldOwn+e.HeldOwn
	switch billing.Type(e.Type) {
	case billing.ChargeEntry:
		sum.chargedTrial, sum.chargedOwn = sum.chargedTrial-e.HeldTrial, sum.chargedOwn-e.HeldOwn
	case billing.RefundEntry:
		sum.refundedTrial, sum.refundedOwn = sum.refundedTrial+e.Trial, sum.refundedOwn+e.Own
	}
	switch {
	case !holds:
	case first == e.SessionID:
		s.mixed = s.mixed || x.held
		x.price, x.product, x.held = -int64(e.Trial+e.Own), e.Description, true
	case strings.Contains(first, ":traffic:"):
		s.traffic = true
	default:
		s.mixed = s.mixed || !strings.Contains(first, ":")
	}
}

// Rules that a survey shows to hold, beside those of oddSessions.
const (
	sessionSums    = "what a session holds, was charged and refunded equals its entries"
	entryOfAgent   = "every entry of a session is of its agent"
	heldIsPrice    = "what was held for a session is its price"
	heldIsProduct  = "a session is of the product that it was held for"
	addedIsPrice   = "what was held for added traffic is its price"
	walletHolds    = "what a wallet holds its sessions hold"
	walletLives    = "a wallet counts its live sessions"
	agentTraffic   = "the traffic and the rotations of an agent are those of its sessions"
	trafficCharged = "traffic is charged to its price once settled, and never beyond"
	trafficSettled = "an active session with traffic that is not charged is settled later"
	sessionUse     = "the hours of a session add up to it"
	hoursInLife    = "the hours of a session lie within its life"
	hoursOfAgent   = "what the hours of an agent were charged, refunded and recharged equals its wallet"
	hourSums       = "the sums of hours are right"
	lastHours      = "the counts of sessions by their last hour are right"
	hourMoves      = "refunds and recharges are summed in their hours"
	endedCounts    = "the counts of ended sessions are right"
	leasesLeft     = "what a session leased its leases have left"
	isOrdered      = "a session is what was ordered for it"
	orderThere     = "an active session of a seller has its order there"
	linesThere     = "an active session of a list has its lines"
	counterFell    = "the counter of a direct session began anew within what was used"
	additionsThere = "a session has the additions that were bought for it"
	dynamicTerms   = "a dynamic session has one address and no days"
)

// oddSessions has conditions of a session s. If no session meets it, the rule holds.
var oddSessions = map[string]string{
	"no session used more than it bought": "s.bytes > 0 AND s.up + s.down + s.leased > s.bytes",
	"no session is refunded more than it was charged": `s.refunded_trial NOT BETWEEN 0 AND s.charged_trial
		OR s.refunded_own NOT BETWEEN 0 AND s.charged_own`,
	"a session has an end and a reason once it ended, and not before": `(` + ended +
		`) <> (s.ended_at > 0 AND s.reason <> '')`,
	"an active session has its exits": `s.status = 'active' AND (s.exits = ''
		OR length(s.exits) - length(replace(s.exits, ',', '')) + 1 <> s.quantity)`,
	"a session begins before it is active and ends": `s.activated_at > 0 AND s.activated_at < s.created_at - ` + hour + `
		OR s.ended_at > 0 AND s.ended_at < s.created_at - ` + hour,
	"a session is settled soon after it was used or ended": `s.settle_at > 0 AND s.leased = 0
		AND s.settle_at > s.created_at + 4 * ` + day + ` AND s.settle_at > s.usage_at + 4 * ` + day + `
		AND s.settle_at > s.ended_at + 4 * ` + day,
	"a counted session ended and holds nothing": "s.counted = 1 AND (NOT (" + ended +
		") OR s.held_trial + s.held_own > 0)",
	"an ended session that holds money waits for something": ended +
		" AND s.held_trial + s.held_own > 0 AND s.settle_at = 0",
	"a session that was never active is charged for what was delivered": `s.activated_at = 0
		AND s.charged_trial + s.charged_own > 0`,
	trafficSettled: `s.status = 'active' AND s.type = 'dynamic'
		AND s.settle_at = 0 AND (s.up + s.down > 0 OR s.charged_trial + s.charged_own < 0)`,
	trafficCharged: `s.type = 'dynamic' AND s.activated_at > 0
		AND (s.top_ups <> '' OR s.charged_trial + s.charged_own > ` + simplePrice + `
		OR ` + ended + ` AND s.held_trial + s.held_own = 0 AND s.charged_trial + s.charged_own <> ` + simplePrice + `)`,
	additionsThere: "s.top_ups <> ''",
	leasesLeft:     "s.leased <> 0",
	orderThere:     "s.status = 'active' AND EXISTS (SELECT 1 FROM upstream_orders p WHERE p.provider = s.provider)",
	dynamicTerms:   "s.type = 'dynamic' AND (s.quantity <> 1 OR s.days <> 0)",
	"a static session lasts as many days as were paid": "s.type = 'static' AND s.activated_at > 0",
	"a static session that ends early is refunded its unused days by its reason": `s.type = 'static'
		AND s.activated_at > 0 AND s.ended_at > 0`,
	"what a session keeps and which addresses ended is as they were given back": `s.kept <> 0
		OR s.ended_exits <> ''`,
	"an active static session is charged, and holds nothing but for a renewal": "s.type = 'static' AND s.activated_at > 0",
}

// surveyedRules are those of which a survey has a bit, in its order.
var surveyedRules = slices.Sorted(maps.Keys(oddSessions))

// oddBits has a bit for each condition that a session meets, but for those of some rules.
func oddBits(without ...string) string {
	var bits []string
	for i, name := range surveyedRules {
		if !slices.Contains(without, name) {
			bits = append(bits, fmt.Sprintf("CASE WHEN %s THEN %d ELSE 0 END", oddSessions[name], 1<<i))
		}
	}
	return strings.Join(bits, " + ")
}

// agentSum is what the sessions of an agent sum up to.
type agentSum struct{ heldTrial, heldOwn, live, bytes, rotations, charged, refunded, recharged int64 }

// surveyed is a session as a survey reads it.
type surveyed struct {
	sessionSum
	agent, id, product, kind string
	price, quantity, bytes   int64
	rotations, odd           int64

	status                     string
	up, down, connections      int64
	createdAt, usedAt, counted int64
	provider                   string
	ordered                    int64 // an order names it
}

const surveySelect = `SELECT s.agent_id, s.id, s.product_no, s.type, s.price, s.quantity, s.bytes, s.held_trial,
	s.held_own, s.charged_trial, s.charged_own, s.refunded_trial, s.refunded_own, s.rotations + s.worker_rotations,
	s.status, s.up, s.down, s.connections, s.created_at, s.usage_at, s.counted, s.provider, `

// Whether an order names a session is looked up for each one, if there are orders at all.
const (
	surveyOrdered = "CASE WHEN " + inProcess + " THEN 0 ELSE 1 END, "
	surveyNone    = "0, "
)

// surveyBits are the conditions that are not computed here.
var surveyBits = oddBits(trafficCharged)

// sessionQuery returns what a survey reads of sessions, and whether traffic was added to any.
func sessionQuery(conn engine.Conn, scope string, args []any) (query string, additions bool, err error) {
	var added, orders int
	err = conn.Row(scope+`SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM session_topups LIMIT 1) t),
		(SELECT COUNT(*) FROM (SELECT 1 FROM upstream_orders LIMIT 1) o)`, args).Scan(&added, &orders)
	ordered := surveyNone
	if orders > 0 {
		ordered = surveyOrdered
	}
	return scope + surveySelect + ordered + surveyBits + " FROM sessions s", added > 0,
		work.Wrap("look for added traffic", err)
}

// read compares the sessions of a range of agents, in a scope, with their entries and their agents.
func (s *survey) read(ctx context.Context, conn engine.Conn, scope string, r reading, args []any) error {
	for _, name := range surveyedRules {
		s.doubt[name] = false
	}
	if r.month > 0 { // the entries of sealed months were not walked
		return s.readOdd(ctx, conn, scope, args)
	}
	query, additions, err := sessionQuery(conn, scope, args)
	if err != nil {
		return err
	}
	if err := s.readHours(ctx, conn, scope, args); err != nil {
		return err
	}
	charged, found, sums, prices, use, life := false, 0, s.mixed, s.mixed, s.mixed, s.mixed
	var x surveyed
	into := []any{&x.agent, &x.id, &x.product, &x.kind, &x.price, &x.quantity, &x.bytes, &x.heldTrial, &x.heldOwn,
		&x.chargedTrial, &x.chargedOwn, &x.refundedTrial, &x.refundedOwn, &x.rotations, &x.status, &x.up, &x.down,
		&x.connections, &x.createdAt, &x.usedAt, &x.counted, &x.provider, &x.ordered, &x.odd}
	err = conn.Rows(ctx, query, args, func(row engine.Row) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		s.note(x.odd)
		s.addAgent(&x)
		charged = charged || x.mischarged()
		e := s.of[x.id]
		if e == nil {
			e = &none
		} else if e.entries {
			found++
		}
		s.deliver(&x, e)
		s.orders = s.orders || x.ordered == 1
		sums = sums || e.sum != x.sessionSum || e.entries && e.agent != x.agent
		prices = prices || e.held && (e.price != x.firstPrice() ||
			e.product != "" && !strings.HasSuffix(e.product, x.product))
		use = use || e.hours.up != x.up || e.hours.down != x.down || e.hours.connections != x.connections ||
			e.hours.charged != x.chargedTrial+x.chargedOwn || e.hours.refunded != x.refundedTrial+x.refundedOwn
		life = life || e.isUsed && (e.begin < x.createdAt-2*dayMicros || e.end > x.usedAt+2*dayMicros)
		return nil
	})
	if err != nil {
		return work.Wrap("survey sessions", err)
	}
	for _, x := range s.of {
		if x.entries {
			found--
		}
	}
	sums = sums || found != 0
	s.doubt[sessionUse], s.doubt[hoursInLife], s.doubt[trafficCharged] = use, life, charged
	for _, name := range []string{sessionSums, entryOfAgent} {
		s.doubt[name] = sums
	}
	for _, name := range []string{heldIsPrice, heldIsProduct} {
		s.doubt[name] = sums || prices || additions
	}
	s.doubt[addedIsPrice] = s.mixed || s.traffic || additions
	for _, name := range []string{isOrdered, linesThere, counterFell} {
		s.doubt[name] = s.orders
	}
	for _, name := range []string{additionsThere, trafficCharged, trafficSettled} {
		s.doubt[name] = s.doubt[name] || additions
	}
	return errors.Join(s.readAgents(ctx, conn, scope, args), s.readCounts(ctx, conn, scope, args),
		s.readDeliveries(ctx, conn, r))
}

// none is what is known of a session without entries and hours.
var none sold

// addAgent adds a session to what is compared with its agent.
func (s *survey) addAgent(x *surveyed) {
	a := s.agents[x.agent]
	a.heldTrial, a.heldOwn = a.heldTrial+x.heldTrial, a.heldOwn+x.heldOwn
	if x.status == "creating" || x.status == "active" {
		a.live++
	}
	a.bytes, a.rotations = a.bytes+x.up+x.down, a.rotations+x.rotations
	s.agents[x.agent] = a
	if x.counted == 1 {
		s.ended[endedOf{x.agent, x.product, x.kind, x.status}]++
	}
}

// readAgents compares the sums of sessions and hours with their agents.
func (s *survey) readAgents(ctx context.Context, conn engine.Conn, scope string, args []any) error {
	var agent string
	var is agentSum
	var keys, counted int64
	differs, money, restricted, miscounted := false, s.mixed, false, false
	err := conn.Rows(ctx, scope+`SELECT w.agent_id, w.held_trial, w.held_own, w.live_sessions, COALESCE(c.bytes, 0),
		COALESCE(c.rotations, 0), w.charged, w.refunded, w.recharged, w.restricted_keys,
		(SELECT COUNT(*) FROM key_wallets k WHERE k.agent_id = w.agent_id) FROM wallets w
		LEFT JOIN counters c ON c.agent_id = w.agent_id`, args, func(row engine.Row) error {
		err := row.Scan(&agent, &is.heldTrial, &is.heldOwn, &is.live, &is.bytes, &is.rotations, &is.charged, &is.refunded,
			&is.recharged, &keys, &counted)
		restricted, miscounted = restricted || keys > 0 || counted > 0, miscounted || keys != counted
		sum := s.agents[agent]
		delete(s.agents, agent)
		money = money || sum.charged != is.charged || sum.refunded != is.refunded || sum.recharged != is.recharged
		sum.charged, sum.refunded, sum.recharged = is.charged, is.refunded, is.recharged
		differs = differs || sum != is
		return err
	})
	for _, name := range []string{walletHolds, walletLives, agentTraffic} {
		s.doubt[name] = differs || len(s.agents) > 0
	}
	s.doubt[keyCosts], s.doubt[spentByKey], s.doubt[keysCounted] = restricted, restricted, miscounted
	s.doubt[hoursOfAgent] = money || len(s.agents) > 0
	return work.Wrap("survey agents", err)
}

// firstPrice returns what was held for a session without additions when it was created; -1: no price is right.
func (x *surveyed) firstPrice() int64 {
	switch {
	case x.quantity < 0 || x.quantity > 1e9:
		return -1
	case x.kind == "dynamic":
		return x.priceOf(x.bytes, 999_999_999)
	case x.price < 0 || x.price > 9_000_000_000 || x.bytes < 0 || x.bytes > 1e18:
		return -1
	}
	return x.price * x.quantity
}

// priceOf returns the price of a number of bytes, as the rules compute it.
func (x *surveyed) priceOf(bytes, round int64) int64 {
	if x.price < 0 || x.price > 9_000_000_000 || bytes < 0 || bytes > 1e18 {
		return -1
	}
	return bytes/1e9*x.price + (bytes%1e9*x.price+round)/1e9
}

// mischarged reports whether a session without additions is charged more than its traffic, or not that once it ended
// and holds nothing. One that was never active has none.
func (x *surveyed) mischarged() bool {
	if x.kind != "dynamic" {
		return false
	}
	charged, due := x.chargedTrial+x.chargedOwn, x.priceOf(x.up+x.down, 0)
	over := x.status == "terminated" || x.status == "expired" || x.status == "failed"
	return charged > due || over && x.heldTrial+x.heldOwn == 0 && charged != due
}
