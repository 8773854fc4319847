// Package rows keeps the rows that units of work read and change in memory, and writes what changed by one
// statement a table.
//
// A Table is a value that declares how one of its rows is found and locked, in which order rows are
// written, and by which statement. A Set holds the rows of one unit, or of the units that share a
// transaction. A repository method is written once, on the tables:
//
//	w, found, err := wallets.Get(unit.Set, agentID)
//	...
//	err = wallets.Put(unit.Set, agentID, w)
//
// In a unit with a transaction of its own Get selects a row that is not in memory and locks it until
// the end of the unit, so what is in memory stays true. What Put, Add and Insert change is written by
// Flush: before the unit runs a statement of its own, and at its end. A unit that fails before has
// written nothing.
//
// Units that share a transaction have one Set. Its rows were read ahead for all of them, and Get of
// any other row ends the unit with engine.ErrAlone, which runs it again in a transaction of its own. End
// keeps or drops what one of the units changed, and Flush writes what was kept when all have run.
//
// On SQLite they were not read ahead: a unit reads what is not in memory, and Next hands rows of tables that keep them
// on to the units of the next transaction, while no other connection changes the file.
package rows
