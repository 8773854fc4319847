package proxyseller

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
)

// listedOrder is an entry of order/list, which has every purchase of the account: also
// those whose addresses are not delivered yet.
type listedOrder struct {
	Number     string `json:"order_number"`
	BaseNumber string `json:"base_order_number"`
	Sum        string `json:"summ"` // "$25.00"
	Status     string `json:"status_type"`
	// InsertedAt is the time of the order. That the field has the name by which the list
	// is sorted is unverified; orders without it count as recent.
	InsertedAt string `json:"date_insert"`
}

// The states of a listedOrder.
const (
	notPaid  = "NOT_PAYED"
	returned = "RETURN"
)

// order returns the number that an order keeps through its renewals.
func (o listedOrder) order() string { return cmp.Or(o.BaseNumber, o.Number) }

// at returns the time of the order; it is zero if that is not known.
func (o listedOrder) at() time.Time {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(form, o.InsertedAt); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// cost returns the sum of the order; it is 0 if that is not known.
func (o listedOrder) cost() domain.Money {
	var m amount
	if json.Unmarshal([]byte(strconv.Quote(strings.TrimPrefix(o.Sum, "$"))), &m) != nil || m < 0 {
		return 0
	}
	return domain.Money(m)
}

// deliveryTime is how long a paid order may be without addresses. The seller promises a
// minute; a stock-out can take longer.
const deliveryTime = 24 * time.Hour

// The bounds of order/list.
const (
	ordersPage     = 100
	maxOrdersPages = 20
)

// recent returns the purchases of the last deliveryTime, the newest first. It fails with
// Temporary if the list is longer than it reads, because then no order is provably absent.
func (p *addressProvider) recent(ctx context.Context) ([]listedOrder, error) {
	limit := p.now().Add(-deliveryTime)
	var found []listedOrder
	for page := 1; page <= maxOrdersPages; page++ {
		var data struct {
			Metadata struct {
				Pages *int `json:"total_pages"`
			} `json:"metadata"`
			Items *[]listedOrder `json:"items"`
		}
		query := "?is_extend=N&sort_by=date_insert&order=desc&limit=" + strconv.Itoa(ordersPage) + "&page=" +
			strconv.Itoa(page)
		if err := p.get(ctx, "/order/list"+query, &data); err != nil {
			return nil, err
		}
		if data.Items == nil || data.Metadata.Pages == nil {
			return nil, unexpected(procurement.Temporary)
		}
		list := *data.Items
		old := 0
		for _, o := range list {
			if o.order() == "" {
				return nil, unexpected(procurement.Temporary) // an order that could not be found again
			}
			if at := o.at(); !at.IsZero() && at.Before(limit) {
				old++
			} else {
				found = append(found, o)
			}
		}
		// A page that is not sorted shows nothing about the next ones.
		sorted := slices.IsSortedFunc(list, func(a, b listedOrder) int { return b.at().Compare(a.at()) })
		if page >= *data.Metadata.Pages || len(list) == 0 || sorted && old > 0 {
			return found, nil
		}
	}
	return nil, procurement.Refuse(procurement.Temporary, "there are more orders than are read")
}

// undelivered returns the state of an order without addresses: Pending if it is paid and
// recent, and Gone if its money was returned. It fails with NotFound for any other.
func (p *addressProvider) undelivered(ctx context.Context, ref string) (procurement.Delivery, error) {
	missing := procurement.Refuse(procurement.NotFound, "no such order")
	if ref == "" {
		return procurement.Delivery{}, missing
	}
	list, err := p.recent(ctx)
	if err != nil {
		return procurement.Delivery{}, err
	}
	i := slices.IndexFunc(list, func(o listedOrder) bool { return o.order() == ref })
	switch {
	case i < 0 || list[i].Status == notPaid:
		return procurement.Delivery{}, missing
	case list[i].Status == returned:
		return procurement.Delivery{Ref: ref, State: procurement.Gone, CreatedAt: list[i].at()}, nil
	}
	return procurement.Delivery{Ref: ref, State: procurement.Pending, CreatedAt: list[i].at()}, nil
}
