package console

import (
	"net/http"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/app/overview"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// overviewData is what the first page shows. What the key of the sign-in must not read is nil.
type overviewData struct {
	Now      time.Time
	Info     accounts.Info
	Balance  *ledger.Balance
	Pace     domain.Money // spent a day, over the last seven days
	Days     string       // that the balance lasts at that pace; empty: nothing was spent
	Sessions *liveData
	Causes   []overview.Cause
	Week     *usageData
	Month    *usageData
	MayBuy   bool
}

// liveData is how many sessions are live.
type liveData struct {
	Active, Creating int
	Total            int // with those that ended
	Risks            []riskCount
}

type riskCount struct {
	Risk  health.Risk
	Count int
}

// risks lists the levels from the best to the worst.
var risks = []health.Risk{health.Low, health.Medium, health.High, health.Critical}

// usageData is the traffic and the cost of some days.
type usageData struct {
	Days        int
	Used        int64
	Cost        domain.Money
	Bytes, Paid ui.Chart
	Buckets     []ports.Hour
}

// mostCauses is how many causes of failures the first page lists.
const mostCauses = 20

func (c *Console) overview(v *view) error {
	d := overviewData{Now: c.Clock.Now(), MayBuy: v.may(account.SessionsWrite)}
	var err error
	if d.Info, err = c.Accounts.Info(v, v.caller.AgentID); err != nil {
		return err
	}
	if v.may(account.SessionsRead) {
		if err := c.live(v, &d); err != nil {
			return err
		}
	}
	if v.may(account.StatsRead) {
		if d.Month, err = c.usage(v, 30); err != nil {
			return err
		}
		d.Week = d.Month.last(7)
	}
	if v.may(account.BillingRead) {
		b, err := c.Wallet.Balance(v, v.caller.AgentID)
		if err != nil {
			return err
		}
		d.Balance = &b
		if d.Week != nil {
			d.Pace = d.Week.Cost / 7
			d.Days = daysLeft(b.Wallet.Balance(), d.Week.Cost)
		}
	}
	return v.show(http.StatusOK, "overview", v.frame("Overview", d))
}

// daysLeft returns how many days a balance lasts if each seven cost what the last did.
func daysLeft(balance, week domain.Money) string {
	if week <= 0 {
		return ""
	}
	days := domain.MulDiv(int64(max(balance, 0)), 7, int64(week))
	if days > 999 {
		return "more than 999"
	}
	return domain.FormatDecimal(days, 0)
}

// live reads how the sessions fare.
func (c *Console) live(v *view, d *overviewData) error {
	o, err := c.Stats.Overview(v, v.caller.AgentID)
	if err != nil {
		return err
	}
	look, err := c.Overview.Summarize(v, v.caller.AgentID, mostCauses)
	if err != nil {
		return err
	}
	d.Sessions = &liveData{Active: o.Active, Creating: o.Creating, Total: o.Total}
	for _, r := range risks {
		d.Sessions.Risks = append(d.Sessions.Risks, riskCount{r, look.Risks[r]})
	}
	d.Causes = look.Causes
	return nil
}

// usage reads the traffic and the cost of a number of days, the current one included.
func (c *Console) usage(v *view, days int) (*usageData, error) {
	to := c.Clock.Now().UTC().Truncate(session.Day).Add(session.Day)
	list, err := c.Stats.Series(v, v.caller.AgentID, ledger.Range{Step: session.Day,
		From: to.Add(-time.Duration(days) * session.Day), To: to})
	if err != nil {
		return nil, err
	}
	return newUsage(list, "a day"), nil
}

// newUsage sums and draws buckets.
func newUsage(list []ports.Hour, each string) *usageData {
	u := &usageData{Days: len(list), Buckets: list,
		Bytes: ui.Chart{Title: "Traffic " + each, Unit: "bytes", Names: []string{"Traffic"}, Values: [][]float64{{}}},
		Paid:  ui.Chart{Title: "Cost " + each, Unit: "usd", Names: []string{"Cost"}, Values: [][]float64{{}}}}
	for _, b := range list {
		cost := b.Charged - b.Refunded
		u.Used += b.Up + b.Down
		u.Cost += cost
		u.Bytes.Times = append(u.Bytes.Times, b.Start.Unix())
		u.Bytes.Values[0] = append(u.Bytes.Values[0], float64(b.Up+b.Down))
		u.Paid.Values[0] = append(u.Paid.Values[0], float64(cost)/float64(domain.Dollar))
	}
	u.Paid.Times = u.Bytes.Times
	return u
}

// last returns the usage of the last buckets.
func (u *usageData) last(n int) *usageData {
	return newUsage(u.Buckets[max(len(u.Buckets)-n, 0):], "a day")
}
