package console

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/ratelimit"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// moneyData is the page of the account's money.
type moneyData struct {
	Balance  ledger.Balance
	Budget   ledger.BudgetView
	Percents string // the thresholds of the budget
	Orders   []recharge.Order
	Type     string
	Types    []billing.Type
	Ledger   []billing.Entry
	Pages    pager
	CSV      string
	Report   ledger.UsageReport
	Costs    pager // of the report
	Key      string
	MayWrite bool
}

// mostOrders is how many orders the page lists.
const mostOrders = 10

func (c *Console) money(v *view) error { return c.showMoney(v, nil) }

func (c *Console) showMoney(v *view, cause error) error {
	q, id := v.r.URL.Query(), v.caller.AgentID
	d := moneyData{Type: q.Get("type"), Types: billing.Types, Key: c.IDs.New("form_"),
		MayWrite: v.may(account.BillingWrite),
		CSV:      Base + "/money/ledger.csv?type=" + url.QueryEscape(q.Get("type"))}
	var err error
	if d.Balance, err = c.Wallet.Balance(v, id); err != nil {
		return err
	}
	if d.Budget, err = c.Wallet.Budget(v, id); err != nil {
		return err
	}
	for _, t := range d.Budget.Thresholds {
		d.Percents = strings.TrimPrefix(d.Percents+", "+strconv.Itoa(t), ", ")
	}
	orders, err := c.Recharges.List(v, id, "", domain.Page{Number: 1, Size: mostOrders})
	if err != nil {
		return err
	}
	d.Orders = orders.Items
	page := v.pageOf("page")
	list, err := c.Wallet.Transactions(v, id, ports.LedgerFilter{Type: billing.Type(d.Type)}, page)
	if err != nil {
		return err
	}
	d.Ledger, d.Pages = list.Items, v.pager("page", page, list.Total, "ledger")
	period := q.Get("period")
	if period == "" {
		period = "week"
	}
	costs := v.pageOf("costs")
	if d.Report, err = c.Wallet.UsageReport(v, id, period, costs); err != nil {
		return err
	}
	d.Costs = v.pager("costs", costs, d.Report.Sessions.Total, "cost-title")
	return v.showAgain("money", v.frame("Money", d), cause)
}

// setBudget sets what the form has: an empty limit is none.
func (c *Console) setBudget(v *view) error {
	in := ledger.SetBudget{AgentID: v.caller.AgentID, Paused: new(v.r.PostFormValue("paused") == "yes")}
	var issues []domain.FieldIssue
	limit := func(field string) **domain.Money {
		to := new(*domain.Money)
		text := strings.TrimSpace(v.r.PostFormValue(field))
		if text == "" {
			return to
		}
		m, err := domain.ParseMoney(text)
		if err != nil || m < 0 {
			issues = append(issues, domain.FieldIssue{Field: field,
				Issue: "must be an amount of 0 or more with at most 6 decimals"})
		}
		*to = &m
		return to
	}
	in.Daily, in.Total = limit("daily_limit"), limit("total_limit")
	percents := []int{}
	separates := func(c rune) bool { return strings.ContainsRune(", %", c) }
	for part := range strings.FieldsFuncSeq(v.r.PostFormValue("alert_thresholds"), separates) {
		n, err := strconv.Atoi(part)
		if err != nil {
			issues = append(issues, domain.FieldIssue{Field: "alert_thresholds",
				Issue: "must be percents with commas, such as 50, 90"})
			break
		}
		percents = append(percents, n)
	}
	in.Thresholds = &percents
	if err := noComma(v.r.PostForm, "daily_limit", "total_limit"); err != nil {
		return c.showMoney(v, err)
	}
	if issues != nil {
		return c.showMoney(v, domain.InvalidFields(issues...))
	}
	if _, err := c.Wallet.SetBudget(v, in); err != nil {
		return c.showMoney(v, err)
	}
	return v.leave("/money", "budget")
}

// ledgerCSV answers every entry of a type, newest first.
func (c *Console) ledgerCSV(v *view) error {
	of, page := billing.Type(v.r.URL.Query().Get("type")), domain.Page{Number: 1, Size: domain.MaxPageSize}
	list, err := c.Wallet.Transactions(v, v.caller.AgentID, ports.LedgerFilter{Type: of}, page)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `attachment; filename="ledger.csv"`)
	out := csv.NewWriter(v.w)
	_ = out.Write([]string{"transaction_id", "created_at", "type", "amount", "balance_after", "charged_amount", "currency",
		"description", "session_id", "order_id"})
	for {
		v.chargeRead(len(list.Items) + ratelimit.ItemsOfACall) // a page costs what it costs as a call
		for _, e := range list.Items {
			_ = out.Write(csvRow(e))
		}
		if list.Next == 0 || out.Error() != nil {
			break
		}
		page.After = list.Next // entries that are booked meanwhile move nothing
		if list, err = c.Wallet.Transactions(v, v.caller.AgentID, ports.LedgerFilter{Type: of}, page); err != nil {
			panic(http.ErrAbortHandler) // a file that is cut must not look whole
		}
	}
	out.Flush()
	return nil
}

func csvRow(e billing.Entry) []string {
	return []string{e.ID, e.At.UTC().Format(time.RFC3339Nano), string(e.Type), e.Amount().String(),
		e.BalanceAfter.String(), e.Charged().String(), domain.Currency, cell(e.Description), e.SessionID, e.OrderID}
}

// cell keeps a spreadsheet from taking a text for a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// rechargeData is the page of an order.
type rechargeData struct {
	payments.OrderView
	Now time.Time
}

func (c *Console) createRecharge(v *view) error {
	call, err := v.formCall()
	if err != nil {
		return err
	}
	if err := noComma(v.r.PostForm, "amount"); err != nil {
		return c.showMoney(v, err)
	}
	amount, err := domain.ParseMoney(strings.TrimSpace(v.r.PostFormValue("amount")))
	if err != nil {
		amount = -1 // which is out of bounds
	}
	done, err := c.Recharges.Create(v, payments.CreateOrder{AgentID: v.caller.AgentID, Amount: amount, Call: call})
	if err != nil {
		return c.showMoney(v, err)
	}
	return v.leave("/money/recharges/"+done.View.ID, "ordered")
}

func (c *Console) readOrder(v *view) (payments.OrderView, error) {
	id := v.r.PathValue("order_id")
	if len(id) > 64 || !plain(id) {
		return payments.OrderView{}, recharge.ErrNotFound
	}
	return c.Recharges.Get(v, v.caller.AgentID, id)
}

func (c *Console) recharge(v *view) error {
	o, err := c.readOrder(v)
	if err != nil {
		return err
	}
	f := v.frame("Recharge of "+o.Amount.String()+" USDT", rechargeData{o, c.Clock.Now()})
	if o.Status != recharge.Paid && o.Status != recharge.Failed {
		f.Refresh = 5
	}
	return v.show(http.StatusOK, "recharge", f)
}

// rechargeQR draws the address of an order.
func (c *Console) rechargeQR(v *view) error {
	o, err := c.readOrder(v)
	if err != nil {
		return err
	}
	if o.Address == "" {
		return recharge.ErrOff
	}
	picture, err := drawCode(o.Address)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "image/png")
	_, _ = v.w.Write(picture) // an error means that the client is gone
	return nil
}
