package procurement

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// orderRow is a row of upstream_orders.
type orderRow struct {
	Plan     orderPlan     `gorm:"embedded"`
	Progress orderProgress `gorm:"embedded"`
}

func (orderRow) TableName() string { return "upstream_orders" }

// orderPlan is what is written once.
type orderPlan struct {
	ID        string
	Kind      procurement.Kind
	SessionID string
	Provider  string
	Type      session.Type
	SKU       string
	Country   string
	City      string
	Quantity  int
	Days      int
	Bytes     int64
	MaxCost   domain.Money
	PlannedAt time.Time `gorm:"serializer:micros"`
}

// orderProgress is what Put writes.
type orderProgress struct {
	Status         procurement.Status
	Ref            string
	State          procurement.State
	BeforeRefs     string // JSON
	BeforeAmount   domain.Money
	BeforeKnown    bool
	BeforeAt       time.Time `gorm:"serializer:micros"`
	SealedDelivery []byte    `gorm:"column:goods"` // renaming the column would stop older replicas
	Cost           domain.Money
	Class          procurement.Class
	Reason         string
	SentAt         time.Time `gorm:"serializer:micros"`
	DecidedAt      time.Time `gorm:"serializer:micros"`
	NextAt         time.Time `gorm:"serializer:micros"`
	FrozenAt       time.Time `gorm:"serializer:micros"`
	LostAt         time.Time `gorm:"serializer:micros"`
	ClosedAt       time.Time `gorm:"serializer:micros"`
	ExpiresAt      time.Time `gorm:"serializer:micros"`
	CutAt          time.Time `gorm:"serializer:micros"`
	CounterBase    int64
	CounterFellAt  time.Time `gorm:"serializer:micros"`
}

func toOrderRow(o procurement.Order) (orderRow, error) {
	refs, err := json.Marshal(listedBefore(o))
	if err != nil {
		return orderRow{}, err
	}
	in := o.Intent
	return orderRow{
		orderPlan{
			ID: o.ID, Kind: o.Kind, SessionID: o.SessionID, Provider: o.Provider, Type: in.Type, SKU: in.SKU,
			Country: in.Location.Country, City: in.Location.City, Quantity: in.Quantity, Days: in.Days, Bytes: in.Bytes,
			MaxCost: in.MaxCost, PlannedAt: o.PlannedAt,
		},
		orderProgress{
			Status: o.Status, Ref: o.Ref, State: o.State, BeforeRefs: string(refs), BeforeAmount: o.Before.Funds.Amount,
			BeforeKnown: o.Before.Funds.Known, BeforeAt: o.Before.At, SealedDelivery: column.Bytes(o.SealedDelivery),
			Cost: o.Cost, Class: o.Class, Reason: o.Reason, SentAt: o.SentAt, DecidedAt: o.DecidedAt, NextAt: o.NextAt,
			FrozenAt: o.FrozenAt, LostAt: o.LostAt, ClosedAt: o.ClosedAt, ExpiresAt: o.ExpiresAt, CutAt: o.CutAt,
			CounterBase: o.Counter.Base, CounterFellAt: o.Counter.FellAt,
		},
	}, nil
}

func fromOrderRow(row orderRow) (procurement.Order, error) {
	plan, r := row.Plan, row.Progress
	o := procurement.Order{
		ID: plan.ID, Kind: plan.Kind, SessionID: plan.SessionID, Provider: plan.Provider,
		Intent: procurement.Intent{
			Key: plan.ID, SessionID: plan.SessionID, Type: plan.Type, SKU: plan.SKU,
			Location: session.Location{Country: plan.Country, City: plan.City},
			Quantity: plan.Quantity, Days: plan.Days, Bytes: plan.Bytes, MaxCost: plan.MaxCost,
		},
		Status: r.Status,
		Before: procurement.Snapshot{
			Funds: procurement.ProviderBalance{Amount: r.BeforeAmount, Known: r.BeforeKnown}, At: r.BeforeAt,
		},
		Ref: r.Ref, State: r.State, Counter: procurement.Counter{Base: r.CounterBase, FellAt: r.CounterFellAt},
		Cost: r.Cost, Class: r.Class, Reason: r.Reason,
		PlannedAt: plan.PlannedAt, SentAt: r.SentAt, DecidedAt: r.DecidedAt, NextAt: r.NextAt,
		FrozenAt: r.FrozenAt, LostAt: r.LostAt, ClosedAt: r.ClosedAt, ExpiresAt: r.ExpiresAt, CutAt: r.CutAt,
	}
	if len(r.SealedDelivery) > 0 {
		o.SealedDelivery = r.SealedDelivery
	}
	if err := json.Unmarshal([]byte(r.BeforeRefs), &o.Before.Refs); err != nil {
		return o, fmt.Errorf("refs before order %s: %w", plan.ID, err)
	}
	if !o.Renews() {
		return o, nil
	}
	ends, err := endsBefore(o.Before.Refs)
	o.Before.Refs, o.Before.Ends = nil, ends
	return o, err
}

// listedBefore returns what before_refs holds of an order: the refs of a
// purchase, or "address end" for each address of a renewal.
func listedBefore(o procurement.Order) []string {
	if len(o.Before.Ends) == 0 {
		return o.Before.Refs
	}
	var list []string
	for addr, at := range o.Before.Ends {
		list = append(list, addr.String()+" "+at.UTC().Format(time.RFC3339))
	}
	slices.Sort(list)
	return list
}

func endsBefore(list []string) (map[netip.Addr]time.Time, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ends := make(map[netip.Addr]time.Time, len(list))
	for _, line := range list {
		addr, end, _ := strings.Cut(line, " ")
		ip, err := netip.ParseAddr(addr)
		if err != nil {
			return nil, fmt.Errorf("the address in %q: %w", line, err)
		}
		if ends[ip], err = time.Parse(time.RFC3339, end); err != nil {
			return nil, fmt.Errorf("the end in %q: %w", line, err)
		}
		ends[ip] = ends[ip].UTC()
	}
	return ends, nil
}
