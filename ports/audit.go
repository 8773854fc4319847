package ports

import "context"

// Fault is one row that breaks a rule of the ledger.
type Fault struct {
	Rule   string
	Where  string // the row: an agent, an entry, a session
	Detail string
}

// Audit proves the ledger.
type Audit interface {
	// Verify checks that every entry is balanced, every wallet equals its
	// entries, no balance is negative, what wallets hold equals what sessions
	// hold, and no session used more than it bought. It returns the rows that
	// do not, and how many entries it read.
	Verify(ctx context.Context) (faults []Fault, entries int, err error)
}
