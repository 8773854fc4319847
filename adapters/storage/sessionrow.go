package storage

import (
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

var (
	sessionColumns = column.Names(new(sessionRow))
	stateColumns   = column.Names(new(sessionState))
	usageColumns   = "s." + strings.Join(column.Names(new(usageRow)), ", s.")

	// insertSession numbers the session within its agent. Of two that get the same number at the same
	// time, the unique index refuses one, which is run again.
	insertSession = "INSERT INTO sessions (" + strings.Join(sessionColumns, ", ") + ", ord) VALUES (" +
		work.Placeholders(1, len(sessionColumns)) +
		", (SELECT COALESCE(MAX(ord), 0) + 1 FROM sessions WHERE agent_id = ?2))"

	putSession = "UPDATE sessions SET (" + strings.Join(stateColumns, ", ") + ") = (" +
		work.Placeholders(3, len(stateColumns)) + ") WHERE id = ?1 AND agent_id = ?2"
	putUnindexed = putSessionBut("status", "expires_at")

	sessionSelect = "s." + strings.Join(sessionColumns, ", s.")

	loadSession = "SELECT " + sessionSelect + " FROM sessions s WHERE s.id = ?1"
	getSession  = loadSession + " AND s.agent_id = ?2"

	sessionReadFrom    = "SELECT " + sessionReadColumns
	sessionReadColumns = sessionSelect + ", " + usageColumns + ", h.state" + sessionWithHealth
	sessionWithHealth  = " FROM sessions s LEFT JOIN session_health h ON h.session = s.seq "
	readSession        = sessionReadFrom + "WHERE s.id = ?1 AND s.agent_id = ?2"
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
	BoughtBy, Buyer              string
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
	TopUps, Require                 string
	Skipped                         int
	EndedExits                      string
	Kept                            int64
}

func toSessionRow(s session.Session) sessionRow {
	return sessionRow{sessionIdentity{
		ID: s.ID, AgentID: s.AgentID, Type: string(s.Type), ProductNo: s.ProductNo, CreatedAt: column.Micros(s.CreatedAt),
		BoughtBy: s.BoughtBy.KeyID, Buyer: s.BoughtBy.Name,
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
		TopUps: joinTopUps(s.TopUps), Require: codec.JoinRule(s.Require),
		Skipped:    s.Rotation.Skipped,
		EndedExits: joinEnded(s.Exits), Kept: int64(s.Money.Kept),
	}}
}

func fromSessionRow(r *sessionRow) (session.Session, error) {
	exits, err := splitExits(r.Exits)
	if err != nil {
		return session.Session{}, fmt.Errorf("exits of %s: %w", r.ID, err)
	}
	if err := markEnded(exits, r.EndedExits); err != nil {
		return session.Session{}, fmt.Errorf("ended exits of %s: %w", r.ID, err)
	}
	allowed, err := splitNetworks(r.AllowedIps)
	if err != nil {
		return session.Session{}, fmt.Errorf("allowed networks of %s: %w", r.ID, err)
	}
	topUps, err := splitTopUps(r.TopUps)
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
			Held:     funds(r.HeldTrial, r.HeldOwn),
			Charged:  funds(r.ChargedTrial, r.ChargedOwn),
			Refunded: funds(r.RefundedTrial, r.RefundedOwn), Kept: domain.Money(r.Kept),
		},
		Failure:   session.Failure{Code: r.FailureCode, Message: r.FailureMessage},
		CreatedAt: column.Time(r.CreatedAt), ActivatedAt: column.Time(r.ActivatedAt),
		ExpiresAt: column.Time(r.ExpiresAt), EndedAt: column.Time(r.EndedAt),
		Labels: splitLabels(r.Labels), AllowedIPs: allowed, PasswordNo: r.PasswordNo, Cuts: r.Cuts,
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

// joinEnded writes the places of the exits that ended.
func joinEnded(exits []session.Exit) string {
	var b []byte
	for i, e := range exits {
		if !e.Ended {
			continue
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(i), 10)
	}
	return string(b)
}

// markEnded marks the exits at places that joinEnded wrote.
func markEnded(exits []session.Exit, places string) error {
	if places == "" {
		return nil
	}
	for place := range strings.SplitSeq(places, ",") {
		i, err := strconv.Atoi(place)
		if err != nil || i < 0 || i >= len(exits) {
			return fmt.Errorf("there is no exit %q", place)
		}
		exits[i].Ended = true
	}
	return nil
}

// putSessionBut is like putSession, with the same arguments, for a session whose values of some
// columns stay. SQLite writes the entries of every index that has a column of the statement,
// PostgreSQL those whose values change.
func putSessionBut(same ...string) string {
	var columns, places, where []string
	for i, column := range stateColumns {
		place := "?" + strconv.Itoa(i+3)
		if slices.Contains(same, column) {
			where = append(where, " AND "+column+" = "+place)
			continue
		}
		columns, places = append(columns, column), append(places, place)
	}
	return "UPDATE sessions SET (" + strings.Join(columns, ", ") + ") = (" + strings.Join(places, ", ") +
		") WHERE id = ?1 AND agent_id = ?2" + strings.Join(where, "")
}

func scanSession(id string, found engine.Row) (session.Session, error) {
	var row sessionRow
	err := found.Scan(column.Targets(&row)...)
	if errors.Is(err, sql.ErrNoRows) {
		return session.Session{}, session.ErrNotFound
	}
	if err != nil {
		return session.Session{}, fmt.Errorf("read session %s: %w", id, err)
	}
	return fromSessionRow(&row)
}

// scanSessionRead scans a row of sessionReadFrom.
func scanSessionRead(found engine.Row) (read ports.SessionRead, err error) {
	var row sessionRow
	var usage usageRow
	var state []byte
	if err := found.Scan(column.Targets(&row, column.Targets(&usage, &state)...)...); err != nil {
		return read, err
	}
	if read.Session, err = fromSessionRow(&row); err != nil {
		return read, err
	}
	read.Usage = fromUsageRow(usage)
	read.Health = &fresh
	if len(state) > 0 {
		read.Health = new(health.State)
		*read.Health, err = fromHealthBlob(state)
	}
	return read, err
}

// fresh is the state of sessions without reports.
var fresh health.State

// fromHealthBlob decodes a state. Without a row it is the zero state.
func fromHealthBlob(blob []byte) (s health.State, err error) {
	if len(blob) == 0 {
		return s, nil
	}
	if err := s.UnmarshalBinary(blob); err != nil {
		return s, fmt.Errorf("health state: %w", err)
	}
	return s, nil
}
