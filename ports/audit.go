package ports

import (
	"context"
	"time"
)

// Fault is one row that breaks a rule of the ledger.
type Fault struct {
	Rule   string
	Where  string // the row: an agent, an entry, a session
	Detail string
}

// Proof is what the background proof of the ledger found.
type Proof struct {
	At        time.Time // when the last complete proof ended; zero before the first
	Entries   int64     // that it read
	Faults    int       // rows that broke a rule, or do in the proof that runs
	Rule      string    // of the first of them
	StartedAt time.Time // of the proof that runs; zero if none does

	SucceededAt time.Time     // when the last complete proof without a fault ended; zero before the first
	Took        time.Duration // by the last complete proof, with its pauses
	NewAt       time.Time     // when the entries until then were last found right by ProveNew
	Head        ProofHead     // of what is proved, an hour old at most while the service runs

	Sealed  time.Time // the months before it are sealed; zero: none
	WholeAt time.Time // when the last complete proof without a fault ended that read sealed months too
}

// ProofHead is one digest of all that was proved at a time. Kept outside of the database, it proves the
// past: who rewrites an entry, and the digests with it, has another head.
type ProofHead struct {
	At      time.Time `json:"at"`
	Seq     int64     `json:"seq"`     // of the last entry
	Entries int64     `json:"entries"` // up to it
	Head    string    `json:"head"`    // hexadecimal
}

// Audit proves the ledger.
type Audit interface {
	// Verify checks that every entry is balanced, every wallet equals its
	// entries, no balance is negative, what wallets hold equals what sessions
	// hold, and no session used more than it bought. It returns the rows that
	// do not, at most a thousand for each rule, and how many entries it read. Heads
	// that are given must be those of the entries that they cover.
	Verify(ctx context.Context, against ...ProofHead) (faults []Fault, entries int, err error)
	// VerifyOpen is Verify without the months that are sealed, which it takes as they were sealed. It returns
	// before when they are; zero if none is.
	VerifyOpen(ctx context.Context) (faults []Fault, entries int, sealed time.Time, err error)
	// ProveNext checks the same in parts, and stores how far it came: each call
	// proves the next part, in whatever process. After the last part the proof
	// is complete, and the next call begins another. It leaves out sealed months but for once a week, and
	// seals those that are over.
	ProveNext(ctx context.Context) (Proof, error)
	// ProveNew proves the next entries of those that were booked since the last call, each once, and
	// stores a digest of all that are proved, by which ProveNext and Verify find that one of them was
	// changed later. It reports whether there may be more.
	ProveNew(ctx context.Context) (p Proof, more bool, err error)
	// Proof returns what ProveNext and ProveNew stored last, in whatever process.
	Proof(ctx context.Context) (Proof, error)
}
