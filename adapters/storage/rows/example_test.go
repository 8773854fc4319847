package rows_test

import (
	"fmt"
	"strings"

	"agentproxy/adapters/storage/rows"
)

// balance is a row of a table.
type balance struct {
	ID     string
	Amount int64
}

var putBalances = rows.Upsert[balance]("put balances", "balances", 1)

// balances declares the table.
var balances = &rows.Table[string, int64]{
	Order:   0,
	Compare: strings.Compare,
	Find: func(s *rows.Set, id string) (amount int64, found bool, err error) {
		found, err = s.Find([]any{&amount}, "SELECT amount FROM balances WHERE id = ?1", "balances", id)
		return amount, found, err
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[string, int64]) error {
		return putBalances.Write(to, rows.Map(changed, func(c rows.Change[string, int64]) balance {
			return balance{c.Key, c.Row}
		}))
	},
}

// printer prints the statements that it is sent.
type printer struct{ arrays bool }

func (p printer) Queue(what, statement string, args []any) error {
	fmt.Println(what+":", statement, args)
	return nil
}

func (p printer) Arrays() bool { return p.arrays }

// Units that share a transaction read what was read ahead, and see what those before them changed. One
// statement writes all of it.
func Example() {
	set := rows.NewAhead()
	balances.Load(set, "a", 10)
	balances.Load(set, "b", 20)

	move := func(amount int64) error {
		a, _, _ := balances.Get(set, "a")
		b, _, _ := balances.Get(set, "b")
		if a < amount {
			return fmt.Errorf("a has %d", a)
		}
		_ = balances.Put(set, "a", a-amount)
		return balances.Put(set, "b", b+amount)
	}
	for _, amount := range []int64{7, 5, 2} {
		err := move(amount)
		fmt.Println(amount, err)
		set.End(err == nil)
	}
	_ = set.WriteTo(printer{arrays: true})
	// Output:
	// 7 <nil>
	// 5 a has 3
	// 2 <nil>
	// put balances: INSERT INTO balances (id, amount) SELECT u.id, u.amount FROM unnest(?1::text[], ?2::bigint[]) AS u(id, amount) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount [[a b] [1 29]]
}

// A database without arrays writes one row a statement.
func ExampleStatement() {
	_ = putBalances.Write(printer{}, []balance{{"a", 1}, {"b", 2}})
	update := rows.Update[balance]("set balances", "balances", 1)
	_ = update.Write(printer{}, []balance{{"a", 3}})
	add := rows.Add[balance]("add to balances", "balances", 1)
	_ = add.Write(printer{}, []balance{{"a", 4}})
	// Output:
	// put balances: INSERT INTO balances (id, amount) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount [a 1]
	// put balances: INSERT INTO balances (id, amount) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount [b 2]
	// set balances: UPDATE balances SET amount = ?2 WHERE id = ?1 [a 3]
	// add to balances: INSERT INTO balances (id, amount) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET amount = balances.amount + excluded.amount [a 4]
}
