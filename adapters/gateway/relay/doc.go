// Package relay moves the bytes of tunnels between clients and targets, within what
// the sessions' pools grant.
//
// A tunnel has two directions, each with a goroutine of its own:
//
//	        read                 write
//	source ------> buffer, pipe ------> sink
//	   |  Reserve      |    Settle       |
//	   |    \          |      /          |
//	   |     +--- lease.Pool            |
//	   |
//	   +-- end of input: CloseWrite of the sink, the other direction goes on
//	   +-- failure: interrupt the connection, the other direction stops
//
// Upload counts when it is read from the client, download when it is written to the
// client. The direction that ends last closes the target and calls Config.Ended.
//
// On Linux a direction starts with a buffer in user space and changes to splice(2)
// once it moves much. Between two bursts it holds neither a buffer nor a pipe, so an
// idle tunnel costs two descriptors and two blocked goroutines. Elsewhere bytes are
// copied in user space.
//
// Invariants:
//
//   - Nothing is read without a reservation and nothing is written to a client
//     without one that the current, unexpired lease covers.
//   - At the limit a tunnel is half-closed and drained, never reset.
//   - The hot path allocates nothing and calls no interface of this program.
package relay
