// Package wire reads and writes what clients and targets of a forward proxy say
// to each other: HTTP/1.x heads and bodies (RFC 9110, RFC 9112), the gateway's
// own replies (RFC 9209) and the SOCKS5 handshake (RFC 1928, RFC 1929). It works
// on io.Reader, io.Writer and bytes; it never dials, starts no goroutine, keeps
// no time and decides nothing about who may go where.
//
// Every message is taken apart and written anew, so a target never sees framing
// that this package did not understand. A request is refused when two readers
// could disagree about it; a response is read a little more generously, because
// what is sent on is normalised anyway. No refusal repeats bytes of its sender.
//
// For a plain request on a kept connection the order is
//
//	in.Peek(1)                           // idle deadline, then the head's deadline
//	http1.ReadRequest(in, &req)           // *Error: answer with Reply and close
//	req.Credentials(), req.Target()
//	head := req.Append(buf[:0])          // before in is read again
//	ex := req.Exchange()                 // outlives the head's bytes
//	http1.TakeAll(meter, req.Metered())
//	http1.CopyRequest(up, head, in, req.Body, meter)
//	http1.ReadFinal(out, &resp, ex, writeInterim)
//	http1.CopyResponse(client, resp.Append(buf[:0], closing), out, resp.Body, meter)
//	// resp.KeepUpstream and out.Buffered() empty: the upstream may be pooled
//	// resp.KeepClient and not closing: loop
//
// and for CONNECT: ReadRequest, Credentials, Target, dial, write Established,
// then relay in.Buffered() before anything that is read from the socket itself.
//
// Through an upstream proxy a tunnel comes first: AppendConnect and ReadAnswer, or
// SocksConnect. What the Reader of an answer holds then belongs to the tunnel.
package http1
