// Package refusal defines every answer that the gateway gives by itself: status,
// code, message and advice of HTTP, the error type of RFC 9209 and the reply of
// RFC 1928.
//
// The status states where the cause lies:
//
//	407  the credential is missing or wrong
//	402  the session's traffic is used up
//	403  the target must not be reached
//	410  the session is over for any other reason
//	429  too many connections or too many wrong credentials
//	502  the target or the upstream proxy failed
//	504  the target or the upstream proxy did not answer in time
//	503  the gateway cannot serve the request at the moment
//
// Code is a closed list: metrics count refusals by it, so a new code is a new
// constant there and nothing else. A *Refusal is an error and compares by
// identity; copies made by Because, Note and ProviderAnswer differ from the
// original. None of the texts contains a credential.
package refusal
