package proof

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// actionsStay is the name of the rule by which the actions of operators stay as they were when they were
// proved.
const actionsStay = "no action of an operator that was proved has changed"

// actionProof is the digest of the first actions of a UTC month.
type actionProof struct {
	N      int    `json:"n"`
	Digest string `json:"digest"` // hexadecimal
}

// action is what is proved of a row of audit_actions. A digest holds all of it.
type action struct {
	ID, Who, Via, Name, Subject, Reason, Ref, Details string
	At                                                int64
}

// actionAge is how old an action must be to be proved: what is stored later has a higher seq then.
const actionAge = 10 * time.Minute

// keepActions is how long actions are kept, by the newest of them.
const keepActions = 730 * 24 * time.Hour

var actionSelect = "SELECT " + strings.Join(column.Names(new(action)), ", ") +
	" FROM audit_actions WHERE at < ?1 ORDER BY seq"

// digestActions returns the digests of the months in which actions have the given numbers; the other
// months, and all of a month without a number, are complete. There are at most 730 days of them.
func digestActions(
	ctx context.Context, conn engine.Conn, before int64, first map[string]actionProof,
) (map[string]actionProof, error) {
	type chain struct {
		n      int
		digest [sha256.Size]byte
	}
	chains := map[string]*chain{}
	var a action
	var buffer []byte
	into := column.Targets(&a)
	err := conn.Rows(ctx, actionSelect, []any{before}, func(row engine.Row) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		month := monthOf(a.At)
		c := chains[month]
		if c == nil {
			c = &chain{}
			chains[month] = c
		}
		if p, bounded := first[month]; bounded && c.n == p.N {
			return nil
		}
		b := append(buffer[:0], c.digest[:]...)
		for _, text := range [...]string{a.ID, a.Who, a.Via, a.Name, a.Subject, a.Reason, a.Ref, a.Details} {
			b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
			b = append(b, text...)
		}
		buffer = binary.BigEndian.AppendUint64(b, uint64(a.At))
		c.n, c.digest = c.n+1, sha256.Sum256(buffer)
		return nil
	})
	digests := map[string]actionProof{}
	for month, c := range chains {
		digests[month] = actionProof{c.n, hex.EncodeToString(c.digest[:])}
	}
	return digests, work.Wrap("read the actions of operators", err)
}

func monthOf(at int64) string { return column.Time(at).Format("2006-01") }

// findChangedActions compares the actions with their digests. A month of which the oldest may have been
// removed, as they are after 730 days, is not compared.
func findChangedActions(
	ctx context.Context, conn engine.Conn, proved map[string]actionProof,
) (faults []ports.Fault, err error) {
	if len(proved) == 0 {
		return nil, nil
	}
	var newest int64
	if err := conn.Row("SELECT COALESCE(MAX(at), 0) FROM audit_actions", nil).Scan(&newest); err != nil {
		return nil, work.Wrap("find the newest action of an operator", err)
	}
	digests, err := digestActions(ctx, conn, newest+1, proved)
	if err != nil {
		return nil, err
	}
	oldest := monthOf(column.Micros(column.Time(newest).Add(-keepActions)))
	for _, month := range slices.Sorted(maps.Keys(proved)) {
		if digests[month] != proved[month] && (newest == 0 || month > oldest) {
			faults = append(faults, ports.Fault{Rule: actionsStay, Where: month, Detail: "one of the first of the month"})
		}
	}
	return faults, nil
}

// proveActions proves the actions that are old enough, unless one that was proved has changed.
func (p newProof) proveActions(ctx context.Context) error {
	faults, err := findChangedActions(ctx, p.conn, p.Actions)
	if err != nil || len(faults) > 0 {
		return err // the complete proof names it
	}
	p.Actions, err = digestActions(ctx, p.conn, column.Micros(p.now.Add(-actionAge)), nil)
	return err
}
