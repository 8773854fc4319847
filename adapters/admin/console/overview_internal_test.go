package console

import (
	"testing"
	"time"

	"agentproxy/app/operator"
	"agentproxy/domain"
)

// What is drawn can be read without scripts too, the newest day first.
func TestGrowthIsATableToo(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	s := growth([]operator.Growth{{Day: day, Registered: 2}, {Day: day.AddDate(0, 0, 1)},
		{Day: day.AddDate(0, 0, 2), Received: 3 * domain.Dollar}})
	rows := s.Table.Rows
	if len(rows) != 2 || rows[0].ID != "growth-2026-11-03" || rows[0].Cells[2].Text != "$3.00" || rows[1].Cells[1].Text != "2" {
		t.Errorf("the rows are %+v", rows)
	}
	if c := s.Charts; len(c) != 2 || len(c[0].Times) != 3 || c[0].Values[0][0] != 2 || c[1].Values[0][2] != 3 {
		t.Errorf("the charts are %+v", c)
	}
}
