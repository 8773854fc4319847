package accounts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// trials keeps what of the trial was granted by day and scope.
type trials struct{ *work.Unit }

// Trials returns the counts of granted trials in a unit.
func Trials(u *work.Unit) ports.Trials { return trials{u} }

// takeTrial adds to a count that is locked by it, so of units that take at once each reads what those
// before it took.
const takeTrial = `INSERT INTO trial_grants (day, scope, granted) VALUES (?1, ?2, ?3)
	ON CONFLICT (day, scope) DO UPDATE SET granted = trial_grants.granted + excluded.granted
	WHERE trial_grants.granted + excluded.granted <= ?4 RETURNING granted`

func (r trials) Take(_ context.Context, day time.Time, scope string, amount, most int64) (bool, error) {
	if amount > most {
		return false, nil
	}
	var granted int64
	err := r.Returning(takeTrial, []any{column.Micros(day), scope, amount, most}, &granted)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, work.Wrap("count a trial of "+scope, err)
}

func (r trials) Return(_ context.Context, day time.Time, scope string, amount int64) error {
	n, err := r.Exec(`UPDATE trial_grants SET granted = granted - ?3 WHERE day = ?1 AND scope = ?2`, column.Micros(day),
		scope, amount)
	if err == nil && n == 0 {
		err = errors.New("nothing was granted")
	}
	return work.Wrap("return a trial of "+scope, err)
}

func (r trials) Granted(_ context.Context, day time.Time, scope string) (granted int64, err error) {
	err = r.Row(`SELECT granted FROM trial_grants WHERE day = ?1 AND scope = ?2`, column.Micros(day), scope).Scan(&granted)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return granted, work.Wrap("read the trials of "+scope, err)
}

func (r trials) Purge(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := r.Exec(`DELETE FROM trial_grants WHERE (day, scope) IN (
		SELECT day, scope FROM trial_grants WHERE day < ?1 LIMIT ?2)`, column.Micros(before), limit)
	if err != nil {
		return 0, fmt.Errorf("purge counts of trials: %w", err)
	}
	return int(n), nil
}
