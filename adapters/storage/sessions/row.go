package sessions

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

var (
	// Columns are those of a Row.
	Columns      = column.Names(new(Row))
	usageColumns = "s." + strings.Join(column.Names(new(usageRow)), ", s.")

	selectRow = "s." + strings.Join(Columns, ", s.")

	// ReadFrom reads rows for ScanRead and LoadWhole; the condition follows it.
	ReadFrom = "SELECT " + ReadColumns
	// ReadColumns are the columns of ReadFrom, and where they are from.
	ReadColumns = selectRow + ", " + usageColumns + ", s.settle_at, s.seq, h.state" + withHealth
	readSession = ReadFrom + "WHERE s.id = ?1"
)

const withHealth = " FROM sessions s LEFT JOIN session_health h ON h.session = s.seq "

// Row is a row of sessions, without its usage.
type Row struct {
	Identity
	State
}

// Identity is what is written once.
type Identity struct {
	ID, AgentID, Type, ProductNo string
	CreatedAt                    int64
	BoughtBy, Buyer              string
}

// State is what Put writes.
type State struct {
	indexedState
	unindexedState
}

// indexedState is the part of a state that indexes have.
type indexedState struct {
	Status    string
	ExpiresAt int64
}

type unindexedState struct {
	Reason, Provider            string
	Quantity, Days              int
	Bytes, Price                int64
	Protocol, Country, City     string
	RotationMode                string
	RotationInterval            int64
	Rotations                   int
	RotatedAt, RotationNextAt   int64
	Exits                       string
	HeldTrial, HeldOwn          int64
	ChargedTrial, ChargedOwn    int64
	RefundedTrial, RefundedOwn  int64
	FailureCode, FailureMessage string
	ActivatedAt, EndedAt        int64
	Labels, AllowedIps          string
	PasswordNo, Cuts            int
	TopUps, Require             string
	Skipped                     int
	EndedExits                  string
	Kept                        int64
}

func toRow(s session.Session) Row {
	r := Row{Identity{ID: s.ID, AgentID: s.AgentID, Type: string(s.Type), ProductNo: s.ProductNo,
		BoughtBy: s.BoughtBy.KeyID, Buyer: s.BoughtBy.Name}, State{indexedState{Status: string(s.Status)}, unindexedState{
		Require: codec.JoinRule(s.Require), Exits: codec.JoinExits(s.Exits), EndedExits: codec.JoinEnded(s.Exits),
		Labels: codec.JoinLabels(s.Labels), AllowedIps: codec.JoinNetworks(s.AllowedIPs),
		TopUps: codec.JoinTopUps(s.TopUps),
		Reason: string(s.Reason), Provider: s.Provider,
		Quantity: s.Quantity, Days: s.Days, Bytes: s.Limit(), Price: int64(s.Price),
		Protocol: string(s.Protocol), Country: s.Location.Country, City: s.Location.City,
		RotationMode: string(s.Rotation.Mode), RotationInterval: s.Rotation.Interval.Microseconds(),
		Rotations: s.Rotation.Count, Skipped: s.Rotation.Skipped,
		HeldTrial: int64(s.Money.Held.Trial), HeldOwn: int64(s.Money.Held.Own),
		ChargedTrial: int64(s.Money.Charged.Trial), ChargedOwn: int64(s.Money.Charged.Own),
		RefundedTrial: int64(s.Money.Refunded.Trial), RefundedOwn: int64(s.Money.Refunded.Own),
		Kept: int64(s.Money.Kept), FailureCode: s.Failure.Code, FailureMessage: s.Failure.Message,
		PasswordNo: s.PasswordNo, Cuts: s.Cuts,
	}}}
	r.CreatedAt, r.ActivatedAt = column.Micros(s.CreatedAt), column.Micros(s.ActivatedAt)
	r.ExpiresAt, r.EndedAt = column.Micros(s.ExpiresAt), column.Micros(s.EndedAt)
	r.RotatedAt, r.RotationNextAt = column.Micros(s.Rotation.LastAt), column.Micros(s.Rotation.NextAt)
	return r
}

// FromRow returns the session of a row.
func FromRow(r *Row) (session.Session, error) {
	exits, err := codec.SplitExits(r.Exits)
	if err != nil {
		return session.Session{}, fmt.Errorf("exits of %s: %w", r.ID, err)
	}
	if err := codec.MarkEnded(exits, r.EndedExits); err != nil {
		return session.Session{}, fmt.Errorf("ended exits of %s: %w", r.ID, err)
	}
	allowed, err := codec.SplitNetworks(r.AllowedIps)
	if err != nil {
		return session.Session{}, fmt.Errorf("allowed networks of %s: %w", r.ID, err)
	}
	topUps, err := codec.SplitTopUps(r.TopUps)
	if err != nil {
		return session.Session{}, fmt.Errorf("additions to %s: %w", r.ID, err)
	}
	require, err := codec.SplitRule(r.Require)
	if err != nil {
		return session.Session{}, fmt.Errorf("rule of %s: %w", r.ID, err)
	}
	s := session.Session{
		ID: r.ID, AgentID: r.AgentID, Type: session.Type(r.Type), ProductNo: r.ProductNo,
		BoughtBy: session.Buyer{KeyID: r.BoughtBy, Name: r.Buyer},
		Status:   session.Status(r.Status), Reason: session.Reason(r.Reason), Provider: r.Provider,
		Quantity: r.Quantity, Days: r.Days, Price: domain.Money(r.Price),
		Protocol: session.Protocol(r.Protocol), Location: session.Location{Country: r.Country, City: r.City},
		Rotation: session.Rotation{
			Mode:     session.RotationMode(r.RotationMode),
			Interval: time.Duration(r.RotationInterval) * time.Microsecond,
			Count:    r.Rotations, Skipped: r.Skipped, LastAt: column.Time(r.RotatedAt), NextAt: column.Time(r.RotationNextAt),
		},
		Exits: exits,
		Money: session.Money{
			Held:     codec.Funds(r.HeldTrial, r.HeldOwn),
			Charged:  codec.Funds(r.ChargedTrial, r.ChargedOwn),
			Refunded: codec.Funds(r.RefundedTrial, r.RefundedOwn), Kept: domain.Money(r.Kept),
		},
		Failure:   session.Failure{Code: r.FailureCode, Message: r.FailureMessage},
		CreatedAt: column.Time(r.CreatedAt), ActivatedAt: column.Time(r.ActivatedAt),
		ExpiresAt: column.Time(r.ExpiresAt), EndedAt: column.Time(r.EndedAt),
		Labels: codec.SplitLabels(r.Labels), AllowedIPs: allowed, PasswordNo: r.PasswordNo, Cuts: r.Cuts,
		TopUps: topUps, Require: require,
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

func toUsageRow(u traffic.Usage) usageRow {
	return usageRow{u.Limit, u.Up, u.Down, u.Connections, u.Leased, column.Micros(u.UpdatedAt)}
}

func scanSession(id string, found engine.Row) (session.Session, error) {
	var row Row
	err := found.Scan(column.Targets(&row)...)
	if errors.Is(err, sql.ErrNoRows) {
		return session.Session{}, session.ErrNotFound
	}
	if err != nil {
		return session.Session{}, fmt.Errorf("read session %s: %w", id, err)
	}
	return FromRow(&row)
}

// fresh is the state of sessions without reports.
var fresh health.State

// DecodeHealth decodes a state. Without a row it is the zero state.
func DecodeHealth(blob []byte, s *health.State) error {
	if len(blob) == 0 {
		return nil
	}
	if err := s.UnmarshalBinary(blob); err != nil {
		return fmt.Errorf("health state: %w", err)
	}
	return nil
}
