package storage

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// sessionRow is a row of sessions, without its usage.
type sessionRow struct {
	sessionIdentity
	sessionState
}

// sessionIdentity is what is written once.
type sessionIdentity struct {
	ID, AgentID, Type, ProductNo string
	CreatedAt                    int64
}

// sessionState is what Put writes.
type sessionState struct {
	Status, Reason, Provider        string
	Quantity, Days                  int
	Bytes, Price                    int64
	Protocol, Country, City         string
	RotationMode                    string
	RotationInterval                int64
	Rotations                       int
	RotatedAt, RotationNextAt       int64
	Exits                           string
	HeldTrial, HeldOwn              int64
	ChargedTrial, ChargedOwn        int64
	RefundedTrial, RefundedOwn      int64
	FailureCode, FailureMessage     string
	ActivatedAt, ExpiresAt, EndedAt int64
	Labels, AllowedIps              string
	PasswordNo, Cuts                int
	TopUps                          string
}

func toSessionRow(s session.Session) sessionRow {
	return sessionRow{sessionIdentity{
		ID: s.ID, AgentID: s.AgentID, Type: string(s.Type), ProductNo: s.ProductNo, CreatedAt: column.Micros(s.CreatedAt),
	}, sessionState{
		Status: string(s.Status), Reason: string(s.Reason), Provider: s.Provider,
		Quantity: s.Quantity, Days: s.Days, Bytes: s.Limit(), Price: int64(s.Price),
		Protocol: string(s.Protocol), Country: s.Location.Country, City: s.Location.City,
		RotationMode: string(s.Rotation.Mode), RotationInterval: s.Rotation.Interval.Microseconds(),
		Rotations: s.Rotation.Count, RotatedAt: column.Micros(s.Rotation.LastAt),
		RotationNextAt: column.Micros(s.Rotation.NextAt), Exits: joinExits(s.Exits),
		HeldTrial: int64(s.Money.Held.Trial), HeldOwn: int64(s.Money.Held.Own),
		ChargedTrial: int64(s.Money.Charged.Trial), ChargedOwn: int64(s.Money.Charged.Own),
		RefundedTrial: int64(s.Money.Refunded.Trial), RefundedOwn: int64(s.Money.Refunded.Own),
		FailureCode: s.Failure.Code, FailureMessage: s.Failure.Message,
		ActivatedAt: column.Micros(s.ActivatedAt), ExpiresAt: column.Micros(s.ExpiresAt), EndedAt: column.Micros(s.EndedAt),
		Labels: joinLabels(s.Labels), AllowedIps: joinNetworks(s.AllowedIPs), PasswordNo: s.PasswordNo, Cuts: s.Cuts,
		TopUps: joinTopUps(s.TopUps),
	}}
}

func fromSessionRow(r *sessionRow) (session.Session, error) {
	exits, err := splitExits(r.Exits)
	if err != nil {
		return session.Session{}, fmt.Errorf("exits of %s: %w", r.ID, err)
	}
	allowed, err := splitNetworks(r.AllowedIps)
	if err != nil {
		return session.Session{}, fmt.Errorf("allowed networks of %s: %w", r.ID, err)
	}
	topUps, err := splitTopUps(r.TopUps)
	if err != nil {
		return session.Session{}, fmt.Errorf("additions to %s: %w", r.ID, err)
	}
	s := session.Session{
		ID: r.ID, AgentID: r.AgentID, Type: session.Type(r.Type), ProductNo: r.ProductNo,
		Status: session.Status(r.Status), Reason: session.Reason(r.Reason), Provider: r.Provider,
		Quantity: r.Quantity, Days: r.Days, Price: domain.Money(r.Price),
		Protocol: session.Protocol(r.Protocol), Location: session.Location{Country: r.Country, City: r.City},
		Rotation: session.Rotation{
			Mode:     session.RotationMode(r.RotationMode),
			Interval: time.Duration(r.RotationInterval) * time.Microsecond,
			Count:    r.Rotations, LastAt: column.Time(r.RotatedAt), NextAt: column.Time(r.RotationNextAt),
		},
		Exits: exits,
		Money: session.Money{
			Held:     funds(r.HeldTrial, r.HeldOwn),
			Charged:  funds(r.ChargedTrial, r.ChargedOwn),
			Refunded: funds(r.RefundedTrial, r.RefundedOwn),
		},
		Failure:   session.Failure{Code: r.FailureCode, Message: r.FailureMessage},
		CreatedAt: column.Time(r.CreatedAt), ActivatedAt: column.Time(r.ActivatedAt),
		ExpiresAt: column.Time(r.ExpiresAt), EndedAt: column.Time(r.EndedAt),
		Labels: splitLabels(r.Labels), AllowedIPs: allowed, PasswordNo: r.PasswordNo, Cuts: r.Cuts,
		TopUps: topUps,
	}
	if s.Type == session.Static {
		s.FairUse = r.Bytes
	} else {
		s.Bytes = r.Bytes
	}
	return s, nil
}

// usageRow is what sessions keeps of the usage. Bytes is the limit: what was bought, or a fair use.
type usageRow struct {
	Bytes, Up, Down, Connections, Leased, UsageAt int64
}

func fromUsageRow(r usageRow) traffic.Usage {
	return traffic.Usage{Limit: r.Bytes, Up: r.Up, Down: r.Down, Connections: r.Connections,
		Leased: r.Leased, UpdatedAt: column.Time(r.UsageAt)}
}

// noAddress is an exit whose address is unknown, as that of an upstream proxy may be.
const noAddress = "-"

func joinExits(exits []session.Exit) string {
	if len(exits) == 1 && exits[0].IP.IsValid() {
		return exits[0].IP.String()
	}
	var b []byte
	for i, exit := range exits {
		if i > 0 {
			b = append(b, ',')
		}
		if !exit.IP.IsValid() {
			b = append(b, noAddress...)
		}
		b = exit.IP.AppendTo(b)
	}
	return string(b)
}

func splitExits(text string) ([]session.Exit, error) {
	if text == "" {
		return nil, nil
	}
	exits := make([]session.Exit, 0, strings.Count(text, ",")+1)
	for part := range strings.SplitSeq(text, ",") {
		if part == noAddress {
			exits = append(exits, session.Exit{})
			continue
		}
		ip, err := netip.ParseAddr(part)
		if err != nil {
			return nil, err
		}
		exits = append(exits, session.Exit{IP: ip})
	}
	return exits, nil
}
