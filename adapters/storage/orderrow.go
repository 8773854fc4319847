package storage

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/procurement"
)

// upstreamColumns are the columns of an order of a provider; the first
// upstreamFixed of them are written once. Put counts on the id being the first of
// them, and status and ref the first two of the others.
var upstreamColumns = []string{
	"id", "kind", "session_id", "provider", "type", "sku", "country", "city", "quantity", "days", "bytes", "max_cost",
	"planned_at",
	"status", "ref", "state", "before_refs", "before_amount", "before_known", "before_at", "goods", "cost", "class", "reason",
	"sent_at", "decided_at", "next_at", "frozen_at", "lost_at", "closed_at", "expires_at",
}

const upstreamFixed = 13

var upstreamSelect = strings.Join(upstreamColumns, ", ")

func upstreamValues(o procurement.Order) ([]any, error) {
	refs, err := json.Marshal(listedBefore(o))
	if err != nil {
		return nil, err
	}
	in := o.Intent
	return []any{
		o.ID, string(o.Kind), o.SessionID, o.Provider, string(in.Type), in.SKU, in.Location.Country, in.Location.City,
		in.Quantity, in.Days, in.Bytes, int64(in.MaxCost), micros(o.PlannedAt),
		string(o.Status), o.Ref, string(o.State), string(refs), int64(o.Before.Funds.Amount), flag(o.Before.Funds.Known), micros(o.Before.At),
		bytesOf(o.SealedDelivery), int64(o.Cost), string(o.Class), o.Reason, micros(o.SentAt), micros(o.DecidedAt),
		micros(o.NextAt), micros(o.FrozenAt), micros(o.LostAt), micros(o.ClosedAt), micros(o.ExpiresAt),
	}, nil
}

func scanUpstreamOrder(row engine.Row) (o procurement.Order, err error) {
	var refs string
	var before, planned, sent, decided, next, frozen, lost, closed, expires int64
	in := &o.Intent
	err = row.Scan(
		&o.ID, &o.Kind, &o.SessionID, &o.Provider, &in.Type, &in.SKU, &in.Location.Country, &in.Location.City,
		&in.Quantity, &in.Days, &in.Bytes, &in.MaxCost, &planned,
		&o.Status, &o.Ref, &o.State, &refs, &o.Before.Funds.Amount, &o.Before.Funds.Known, &before,
		&o.SealedDelivery, &o.Cost, &o.Class, &o.Reason, &sent, &decided,
		&next, &frozen, &lost, &closed, &expires,
	)
	if err != nil {
		return o, err
	}
	in.Key, in.SessionID = o.ID, o.SessionID
	o.PlannedAt, o.SentAt, o.DecidedAt, o.NextAt = fromMicros(planned), fromMicros(sent), fromMicros(decided), fromMicros(next)
	o.Before.At = fromMicros(before)
	o.FrozenAt, o.LostAt, o.ClosedAt, o.ExpiresAt = fromMicros(frozen), fromMicros(lost), fromMicros(closed), fromMicros(expires)
	if len(o.SealedDelivery) == 0 {
		o.SealedDelivery = nil
	}
	if err := json.Unmarshal([]byte(refs), &o.Before.Refs); err != nil {
		return o, fmt.Errorf("refs before order %s: %w", o.ID, err)
	}
	if o.Kind == procurement.Renewal {
		o.Before.Ends, err = endsBefore(o.Before.Refs)
		o.Before.Refs = nil
	}
	return o, err
}

// listedBefore returns what before_refs holds of an order: the refs of a
// purchase, or "address end" for each address of a renewal.
func listedBefore(o procurement.Order) []string {
	if o.Kind != procurement.Renewal {
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
