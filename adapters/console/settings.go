package console

import (
	"cmp"
	"slices"
	"strings"

	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
)

// settingsData is the page of what can be changed of a session.
type settingsData struct {
	sessions.View
	LabelText string
	Networks  string
	Policy    policy.Own
	Modes     []policy.Mode
	AutoGB    string // of an addition; empty: it is off
	AutoPrice string // empty: the price of the session
}

// Lines returns rules as a form shows them.
func (settingsData) Lines(rules []string) string { return strings.Join(rules, "\n") }

func (c *Console) settingsPage(v *view) error { return c.showSettings(v, nil) }

func (c *Console) showSettings(v *view, cause error) error {
	s, err := c.readSession(v)
	if err != nil {
		return err
	}
	d := settingsData{View: s, Modes: []policy.Mode{policy.Enforce, policy.Report, policy.Off}}
	for key, value := range s.Labels {
		d.LabelText += key + ":" + value + "\n"
	}
	d.LabelText = strings.Join(slices.Sorted(strings.Lines(d.LabelText)), "")
	for _, p := range s.AllowedIPs {
		d.Networks += p.String() + "\n"
	}
	if auto := s.TopUps.Auto; auto.Bytes > 0 {
		d.AutoGB = domain.FormatDecimal(auto.Bytes, 9)
		if auto.MaxPrice > 0 {
			d.AutoPrice = auto.MaxPrice.String()
		}
	}
	if d.Policy, err = c.Policies.Get(v, v.caller.AgentID, s.ID); err != nil {
		return err
	}
	return v.showAgain("settings", v.frame("Settings of "+s.ID, d), cause)
}

// change changes what a form has, and leads to the session or shows the form again.
func (c *Console) change(v *view, read func() (sessions.Change, error)) error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	in, err := read()
	if err == nil {
		in.AgentID, in.SessionID = v.caller.AgentID, id
		_, err = c.Sessions.Change(v, in)
	}
	if err != nil {
		return c.showSettings(v, err)
	}
	return v.leave("/sessions/"+id, "settings")
}

// setLabels replaces the labels by those of a form, one in each line.
func (c *Console) setLabels(v *view) error {
	return c.change(v, func() (in sessions.Change, err error) {
		labels := session.Labels{}
		for _, line := range lines(v.r.PostFormValue("labels")) {
			key, value, err := session.ParseLabel(line)
			if err != nil {
				return in, domain.InvalidField("labels", "must have key:value in each line; %q is none", line)
			}
			labels[key] = strings.TrimSpace(value)
		}
		in.Labels = &labels
		return in, nil
	})
}

func (c *Console) setAllowedIPs(v *view) error {
	return c.change(v, func() (sessions.Change, error) {
		return sessions.Change{AllowedIPs: new(lines(v.r.PostFormValue("allowed_ips")))}, nil
	})
}

// setAutoTopUp sets what a session buys by itself. A form without an amount turns it off.
func (c *Console) setAutoTopUp(v *view) error {
	return c.change(v, func() (in sessions.Change, err error) {
		form := v.r.PostForm
		var auto *session.AutoTopUp
		if gb := number(form, "add_gb", 9); gb != nil {
			whole := func(name string) int { return int(*cmp.Or(number(form, name, 0), new(int64))) }
			auto = &session.AutoTopUp{BelowPercent: whole("below_percent"), Bytes: *gb, MaxPerDay: whole("max_per_day"),
				MaxPrice: domain.Money(*cmp.Or(number(form, "max_price_per_gb", 6), new(int64)))}
		}
		in.AutoTopUp = &auto
		return in, noComma(form, "add_gb", "max_price_per_gb")
	})
}

func (c *Console) setPolicy(v *view) error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	form := v.r.PostForm
	own := policy.Own{Mode: policy.Mode(form.Get("mode")), Allow: lines(form.Get("allow")), Deny: lines(form.Get("deny")),
		Ports: lines(form.Get("ports"))}
	if err := v.charge(own.Rules()); err != nil {
		return err
	}
	if v.caller.Trial {
		if err := own.CheckTrial(""); err != nil {
			return c.showSettings(v, err)
		}
	}
	if _, err := c.Policies.Put(v, v.caller.AgentID, id, own); err != nil {
		return c.showSettings(v, err)
	}
	return v.leave("/sessions/"+id, "settings")
}

// addData is the form that adds traffic to a session.
type addData struct {
	sessions.View
	Product *catalog.Product // nil: it is not sold any more
	GB      string
	Quote   *ledger.Quote // nil: nothing was asked for, or it cannot be added
	Key     string
}

func (c *Console) addPage(v *view) error { return c.showAdd(v, v.r.URL.Query().Get("traffic_gb"), nil) }

func (c *Console) showAdd(v *view, gb string, cause error) error {
	s, err := c.readSession(v)
	if err != nil {
		return err
	}
	d := addData{View: s, GB: strings.TrimSpace(gb), Key: c.IDs.New("form_")}
	if p, err := c.Catalog.Product(s.ProductNo); err == nil {
		d.Product = &p
	}
	switch {
	case d.GB == "":
		if err = s.MayTopUp(); cause == nil {
			cause = err
		}
	case cause == nil:
		var in sessions.TopUp
		if in, cause = c.topUp(v, s.ID, gb); cause != nil {
			break
		}
		in.DryRun = true
		var done sessions.Done
		if done, cause = c.Sessions.TopUp(v, in); cause == nil {
			d.Quote = done.Quote
		}
	}
	return v.showAgain("addtraffic", v.frame("Add traffic to "+s.ID, d), cause)
}

func (c *Console) topUp(v *view, id, gb string) (in sessions.TopUp, err error) {
	form := map[string][]string{"traffic_gb": {gb}}
	in = sessions.TopUp{AgentID: v.caller.AgentID, By: v.caller.Spender(), SessionID: id,
		Bytes: number(form, "traffic_gb", 9)}
	return in, noComma(form, "traffic_gb")
}

// addTraffic adds what was quoted, for that cost at most.
func (c *Console) addTraffic(v *view) error {
	id, call, err := v.sessionCall()
	if err != nil {
		return err
	}
	gb := v.r.PostFormValue("traffic_gb")
	in, err := c.topUp(v, id, gb)
	if err == nil {
		in.Call = call
		if m, err := domain.ParseMoney(v.r.PostFormValue("max_cost")); err == nil && m > 0 {
			in.MaxCost = &m
		}
		_, err = c.Sessions.TopUp(v, in)
	}
	if err != nil {
		return c.showAdd(v, gb, err)
	}
	return v.leave("/sessions/"+id, "added")
}
