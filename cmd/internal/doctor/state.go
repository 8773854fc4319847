package doctor

import (
	"fmt"
	"time"
)

// Database is what was read of the database.
type Database struct {
	PostgreSQL bool
	Capacity   int64         // bytes that PostgreSQL may take; 0: not declared
	Skew       time.Duration // of this host's clock
	LastRow    time.Time     // when something was last written; zero: never
	BackedUp   time.Time     // when a backup of SQLite was last made; zero: never
	Faults     int           // rows of the ledger that break a rule
	ProvedAt   time.Time     // zero: never
	Now        time.Time
}

// Bounds of what is as it should be.
const (
	mostSkew  = 2 * time.Second
	backupAge = 7 * 24 * time.Hour
	mostLater = 5 * time.Minute
)

// Stored checks what was read of the database.
func Stored(d Database) (f Findings) {
	const keep = " Keep AGENTPROXY_SECRET or the .secret file apart from it."
	switch {
	case d.LastRow.Sub(d.Now) > mostLater:
		f.add(Error, "clock",
			"The last row of the database is of "+d.LastRow.UTC().Format(time.DateTime)+", which is to come.",
			"The clock is wrong now, or was: what it ended does not come back.", "Set the clock right, and run an NTP client.")
	case !d.PostgreSQL:
		f.ok("clock", "SQLite goes by this host's clock.")
	case d.Skew.Abs() > mostSkew:
		f.add(Warning, "clock", fmt.Sprintf("This host's clock is %s off the database's.",
			d.Skew.Abs().Round(time.Millisecond)),
			"The service goes by the database's, but tokens, logs and TLS of this host do not.",
			"Run an NTP client on both hosts.")
	default:
		f.ok("clock", "This host's clock agrees with the database's within %s.", mostSkew)
	}
	switch {
	case d.PostgreSQL:
		f.add(Warning, "backup", "Whether PostgreSQL is backed up is not seen from here.", "Without a backup a lost disk "+
			"is every agent's money.",
			"See that pg_dump or WAL archiving runs, and restore it once."+keep)
	case d.BackedUp.IsZero():
		f.add(Warning, "backup", "The database was never backed up.", "A lost disk is every agent's money.",
			"Run agentproxy backup FILE daily, and copy the file to another host."+keep)
	case d.Now.Sub(d.BackedUp) > backupAge:
		f.add(Warning, "backup", "The last backup was made on "+d.BackedUp.UTC().Format(time.DateOnly)+".",
			"What agents paid since then is lost with the disk.", "Run agentproxy backup FILE daily, and copy the file to "+
				"another host."+keep)
	default:
		f.ok("backup", "The last backup was made on %s.", d.BackedUp.UTC().Format(time.DateOnly))
	}
	f.space(d)
	switch {
	case d.Faults > 0:
		f.add(Error, "ledger", fmt.Sprintf("%d rows of the ledger break a rule.", d.Faults),
			"The balance of an agent may be wrong.", "Run agentproxy verify.")
	case d.ProvedAt.IsZero():
		f.ok("ledger", "The ledger was not proved yet; the service does that in the background.")
	default:
		f.ok("ledger", "The ledger was proved on %s.", d.ProvedAt.UTC().Format(time.DateTime))
	}
	return f
}

// space checks whether the space of PostgreSQL is declared.
func (f *Findings) space(d Database) {
	switch {
	case !d.PostgreSQL:
	case d.Capacity == 0:
		f.add(Warning, "database_space", "How much space PostgreSQL has is not declared.",
			"Accounts on trial may fill its disk, which stops charges and payments too.",
			"Set AGENTPROXY_DATABASE_CAPACITY_MB to the megabytes that the database may take.")
	default:
		f.ok("database_space", "The database may take %d bytes.", d.Capacity)
	}
}

// NoDatabase returns the finding of a database that could not be read.
func NoDatabase(err error) (f Findings) {
	f.add(Error, "database", "The database could not be read: "+err.Error(), "The service does not run with it.",
		"Start it, or correct AGENTPROXY_DATABASE_URL and AGENTPROXY_SECRET.")
	return f
}

// NewDatabase returns the finding of a database that does not exist yet.
func NewDatabase(path string) (f Findings) {
	f.add(Warning, "database", "There is no database at "+path+".", "What is stored could not be checked.",
		"Run this command where the service runs, once it has been started.")
	return f
}
