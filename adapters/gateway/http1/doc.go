// Package http1 reads and writes the HTTP/1.x messages of a forward proxy: heads and
// bodies (RFC 9110, RFC 9112), the proxy's own replies (RFC 9209) and CONNECT through
// an upstream proxy. It works on io.Reader, io.Writer and bytes: it never dials, starts
// no goroutine, sets no deadline and decides nothing about who may reach a target.
//
// Every message is parsed and rewritten, so a target never receives framing that this
// package did not understand. A request that two parsers could read differently is
// refused. A response is parsed a little more leniently, because what is forwarded is
// normalised. No error repeats bytes of the sender.
//
// For a plain request on a kept connection the order is
//
//	in.Peek(1)                           // idle deadline, then the head's deadline
//	http1.ReadRequest(in, &req)          // *Error: write a Reply and close
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
// Through an upstream proxy a tunnel is opened first by AppendConnect and ReadAnswer.
// What the Reader of an answer holds then belongs to the tunnel.
package http1
