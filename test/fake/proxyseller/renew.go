package proxyseller

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// renewal is a renewal that is paid and not completed.
type renewal struct {
	months, polls int
}

// prolongBody is the request of prolong/calc and prolong/make.
type prolongBody struct {
	IDs         []string `json:"ids"`
	PeriodID    string   `json:"periodId"`
	Coupon      string   `json:"coupon"`
	PaymentCode string   `json:"paymentCode"`
}

// prolong calculates a renewal, or makes it. It accepts all addresses of one order only,
// which is how the service renews.
func (s *Server) prolong(r *http.Request, section string, pay bool) string {
	var b prolongBody
	if !read(r, &b) || len(b.IDs) == 0 {
		return unknownError()
	}
	o := s.owner(section, b.IDs)
	switch {
	case o == nil:
		return failure(fault{"IP not found", 0})
	case months(b.PeriodID) == 0:
		return failure(fault{"Set existed [periodId] from reference", 0})
	case b.PaymentCode != "balance":
		return failure(fault{"paymentId not exists", 0})
	case o.renewal != nil && pay:
		return failure(fault{"Prolong for this order is already in progress", 57})
	}
	total := price(b.PeriodID, len(b.IDs))
	data, enough := s.bill(r, total, len(b.IDs))
	if !enough {
		return warning(data) // prolong/make too, without an entry in errors[]
	}
	if !pay {
		data["orders"] = 1
		return success(data)
	}
	s.Sold(r)
	s.charge(total)
	s.renewed++
	now, n := time.Now().UTC(), s.next()
	o.renewals = append(o.renewals, order{id: objectID(now, n), number: fmt.Sprintf("%d_%08d", 1000000+n, n), at: now, total: total,
		status: "PAYED"})
	o.renewal = &renewal{months: months(b.PeriodID), polls: s.renewing}
	if s.renewing == 0 {
		s.settle(o)
	}
	id := o.id
	if s.hideRenewals {
		id = ""
	}
	return success(map[string]any{"orderId": id, "total": number(total), "balance": number(s.balance),
		"listBaseOrderNumbers": []string{o.number}})
}

// owner returns the order that has exactly these ids.
func (s *Server) owner(section string, ids []string) *order {
	for _, o := range s.orders {
		var own []string
		for _, p := range o.proxies {
			own = append(own, p.id)
		}
		slices.Sort(own)
		if asked := slices.Sorted(slices.Values(ids)); o.section == section && slices.Equal(own, asked) {
			return o
		}
	}
	return nil
}

// settle completes a paid renewal, which gives the order and its proxies new ids.
func (s *Server) settle(o *order) {
	now := time.Now().UTC()
	if o.renewal == nil {
		return
	}
	if o.renewal.polls > 0 {
		o.renewal.polls--
		return
	}
	n := s.next()
	o.id, o.part = objectID(now, n), fmt.Sprintf("%d_%08d", 1000000+n, n)
	for _, p := range o.proxies {
		p.id, p.end, p.auto = objectID(now, s.next()), p.end.AddDate(0, o.renewal.months, 0), true
	}
	o.renewal, o.ended = nil, false
}

// autoProlong switches automatic renewal on or off.
func (s *Server) autoProlong(r *http.Request, section string, on bool) string {
	var b struct {
		IDs []string `json:"ids"`
	}
	if !read(r, &b) || len(b.IDs) == 0 {
		return unknownError()
	}
	found := 0
	for _, o := range s.orders {
		for _, p := range o.proxies {
			if o.section == section && slices.Contains(b.IDs, p.id) {
				p.auto = on
				found++
			}
		}
	}
	if found != len(b.IDs) {
		return failure(fault{"IP not found", 0})
	}
	return success(map[string]any{"autoProlong": on}) // invented
}
