// Package lease accounts for the traffic of sessions: what this process may relay
// for a session, what it has relayed, and when it must stop.
//
// A Pool belongs to one session and holds at most one lease of the core. The
// Renewer reports the use of all pools and renews their leases in one loop.
//
//	relay            Pool               Renewer              core
//	  | Reserve(n)    |                    |                   |
//	  |-------------->| no lease: signal   |                   |
//	  |   Blocked     |------------------->| Renew(requests)   |
//	  | Await         |                    |------------------>|
//	  |               |      apply(grant)  |<------------------|
//	  |<--------------|<-------------------| granted           |
//	  | Reserve(n), read, write            |                   |
//	  | Settle(used)  |                    |                   |
//	  |-------------->| Report or low:     | Renew(use, want)  |
//	  |               |------------------->|------------------>|
//
// Invariants:
//
//   - Bytes are reserved before they are read and settled after they have moved, so
//     reserved and used bytes together never exceed what was granted.
//   - Counters are cumulative for one lease: a repeated report counts nothing twice.
//   - One renewal is under way at any time, so no report overtakes another.
//   - A lease that the core calls calm is renewed every Config.Fold, and reported in between every
//     Config.Report, with those of other pools: the core books a report when it is needed.
//   - Relaying stops Config.StopAfter and Config.Fold after the start of the last successful renewal,
//     before the core reclaims the lease. A reservation of a lost lease is void: its
//     epoch differs from the pool's.
package lease
