package http1

// Error is a malformed message. Its texts are constant, so they may be shown to the
// sender.
type Error struct {
	Status int    // the gateway's answer: 4xx or 505 for a request, 502 for a response
	Type   string // the proxy error type of RFC 9209 section 2.3
	Reason string
}

// Error returns the reason.
func (e *Error) Error() string { return "http1: " + e.Reason }

// The proxy error types of RFC 9209 section 2.3 that this package reports.
const (
	typeRequest        = "http_request_error"
	typeProtocol       = "http_protocol_error"
	typeResponseSize   = "http_response_header_section_size"
	typeTransferCoding = "http_response_transfer_coding"
	typeUpgrade        = "http_upgrade_failed"
)

func badRequest(reason string) *Error { return &Error{400, typeRequest, reason} }

func badResponse(reason string) *Error { return &Error{502, typeProtocol, reason} }

// Faults of requests. Those up to errTransferEncoding can also be found in a
// response, where inResponse turns them into a 502.
var (
	errHeadSize         = &Error{431, typeRequest, "the head is longer than 32 KiB"}
	errFieldCount       = &Error{431, typeRequest, "the head has more than 128 fields"}
	errOptionCount      = badRequest("Connection names more than 32 options")
	errLineEnd          = badRequest("a line does not end in CRLF")
	errFieldName        = badRequest("a field line has no valid name before its colon")
	errFieldValue       = badRequest("a field value has a control character")
	errFold             = badRequest("a field is folded over several lines")
	errConnection       = badRequest("Connection is not a list of tokens")
	errContentLength    = badRequest("Content-Length is not one decimal number")
	errTransferEncoding = badRequest("Transfer-Encoding is not exactly chunked, once, in HTTP/1.1")

	errTwoFramings   = badRequest("Content-Length and Transfer-Encoding together")
	errRequestLine   = badRequest("the request line is not method, target and version, one space apart")
	errMethod        = badRequest("the method is not a token")
	errVersion       = &Error{505, typeRequest, "the version is neither HTTP/1.0 nor HTTP/1.1"}
	errNotAbsolute   = badRequest("the target is not an absolute http:// URI; this is a proxy")
	errScheme        = badRequest("only http:// can be forwarded; use CONNECT for anything else")
	errAuthority     = badRequest("the target's host is not a name or an address")
	errPort          = badRequest("the target's port is not a number from 1 to 65535")
	errUserInfo      = badRequest("the target carries user information")
	errTarget        = badRequest("the target has a character that no URI may have")
	errHostMissing   = badRequest("HTTP/1.1 without a Host field")
	errHostTwice     = badRequest("more than one Host field")
	errHost          = badRequest("the Host field is not host or host:port")
	errAuthTwice     = badRequest("more than one Proxy-Authorization field")
	errConnectBody   = badRequest("CONNECT with a body")
	errExpect        = &Error{417, typeRequest, "the only expectation that can be met is 100-continue"}
	errChunkSize     = badRequest("a chunk does not begin with its size in hexadecimal")
	errChunkLine     = badRequest("a chunk's first line is longer than 256 bytes")
	errChunkEnd      = badRequest("a chunk of the given size does not end in CRLF")
	errChunkOverhead = badRequest("chunks carry far more framing than data")
	errTrailers      = badRequest("the trailer section is longer than 8 KiB")
)

// Faults that only a response can have.
var (
	errStatusLine  = badResponse("the answer does not begin with an HTTP/1.x status line")
	errAnswerSize  = &Error{502, typeResponseSize, "the answer's head is longer than 16 KiB"}
	errInterims    = badResponse("more than 16 interim responses")
	errInterimSize = &Error{502, typeResponseSize, "interim responses have more than 16 KiB"}
	errUpgrade     = &Error{502, typeUpgrade, "the target switched protocols without being asked to"}
)

// inResponse returns the same fault as one of a response, with status 502.
func inResponse(err error) error {
	e, ok := err.(*Error)
	if !ok || e.Status == 502 {
		return err
	}
	switch e {
	case errHeadSize, errFieldCount:
		return &Error{502, typeResponseSize, e.Reason}
	case errTransferEncoding, errChunkSize, errChunkLine, errChunkEnd, errChunkOverhead, errTrailers:
		return &Error{502, typeTransferCoding, e.Reason}
	}
	return badResponse(e.Reason)
}
