package diagnose

import "regexp"

// ofSession are the causes that the state of the session explains.
var ofSession = []rule{
	{
		name:     "traffic_used_up",
		what:     "the traffic of the session is used up",
		do:       "buy another session, or more traffic",
		codes:    []string{"TRAFFIC_EXHAUSTED"},
		statuses: []int{402},
		state: func(s Session) bool {
			return s.Reason == "traffic_exhausted"
		},
	},
	{
		name:     "session_over",
		what:     "the session has ended",
		do:       "buy another session",
		codes:    []string{"SESSION_EXPIRED"},
		statuses: []int{410},
		state: func(s Session) bool {
			over := s.Status == "terminated" || s.Status == "expired" || s.Status == "failed"
			return over && s.Reason != "traffic_exhausted"
		},
	},
	{
		name:     "session_not_ready",
		what:     "the session is still being created",
		do:       "wait until its status is active",
		retry:    true,
		codes:    []string{"SESSION_NOT_READY"},
		statuses: []int{503},
		state: func(s Session) bool {
			return s.Status == "creating"
		},
	},
}

// beforeGateway happen before the gateway has identified the session.
var beforeGateway = []rule{
	{
		name: "wrong_password",
		what: "user name and password of the proxy are missing or wrong",
		do: "give the client user name and password of the session's proxy as they are, again; if " +
			"it shows none, it drops those in the address",
		place:    client,
		codes:    []string{"PROXY_AUTH_REQUIRED"},
		statuses: []int{407},
		sure: oneOf(
			`\b407\b`, `proxy authentication required`, `ERR_INVALID_AUTH_CREDENTIALS`, `ERR_PROXY_AUTH`,
			`rejected by the SOCKS5 server`, `socks5? authentication failed`,
			`username/password authentication failed`,
		),
		// All that undici and Chromium write of a refused CONNECT; the event log has other refusals at once.
		text: oneOf(`request was cancelled`, `ERR_TUNNEL_CONNECTION_FAILED`),
	},
	{
		name:  "socks4",
		what:  "the client uses SOCKS4, which has no password",
		do:    "use socks5h:// or the http:// address, which is on the same port",
		place: client,
		sure:  oneOf(`socks ?4`, `\(97\) connection to proxy closed`),
	},
	{
		name:  "socks_not_installed",
		what:  "the client lacks what it needs for SOCKS",
		do:    "use the proxy's http:// address, which is on the same port, or install it: pip install requests[socks]",
		place: client,
		sure:  oneOf(`Missing dependencies for SOCKS`, `socksio.{0,40}not installed`, `No module named .socks`),
	},
	{
		name:  "cause_hidden",
		what:  "the fetch of Node.js hides why it failed",
		do:    "diagnose the text of error.cause; give fetch the proxy by a dispatcher or --use-env-proxy",
		place: client,
		sure:  regexp.MustCompile(`^\W*(TypeError: )?fetch failed\W*$`),
	},
	{
		name: "socks_without_password",
		what: "the client offers a SOCKS5 proxy no password, as browsers do",
		do: "use the proxy's http:// address, which is on the same port, or a local proxy that adds " +
			"the password: apx forward",
		place:    client,
		browsers: true,
		sure: oneOf(
			`no authentication method was acceptable`, `ERR_SOCKS_CONNECTION_FAILED`,
			`does not support socks5? proxy auth`, `no acceptable (auth|method)`,
		),
	},
	{
		name:     "too_many_wrong_passwords",
		what:     "too many wrong passwords came from this address",
		do:       "use the right user name and password; they are accepted at any time",
		retry:    true,
		place:    client,
		codes:    []string{"TOO_MANY_GUESSES"},
		statuses: []int{429},
	},
	{
		name:  "proxy_address_wrong",
		what:  "the name of the proxy has no address",
		do:    "copy host and port of the proxy again",
		place: client,
		sure: oneOf(
			`could not resolve proxy`, `proxyconnect tcp: dial tcp: lookup`,
			`cannot connect to proxy.{0,200}(getaddrinfo|name or service|resolution)`,
		),
		text: oneOf(
			`getaddrinfo`, `ENOTFOUND`, `name or service not known`, `nodename nor servname`, `no such host`,
		),
	},
	{
		name:  "proxy_scheme_wrong",
		what:  "the client uses TLS with the proxy, whose address begins with http://",
		do:    "begin the proxy's address with http://, also for https:// targets",
		place: client,
		sure: oneOf(
			`proxyconnect tcp: (remote error: )?tls`, `appears to only use HTTP`, `ERR_PROXY_CERTIFICATE_INVALID`, `https proxy`,
			`SSL.{0,80}proxy`, `proxy.{0,80}SSL`,
		),
		text: oneOf(
			`wrong version number`, `first record does not look like a TLS handshake`,
			`packet length too long`, `ERR_SSL_PROTOCOL_ERROR`, `record layer failure`,
			`HTTP request was sent to HTTPS`, `HTTP response to HTTPS`,
			`alert.handshake.failure`, // by which a gateway without a certificate ends the handshake
		),
	},
	{
		name:  "proxy_unreachable",
		what:  "the client reaches no proxy at this address",
		do:    "copy host and port of the proxy again; if they are right, a firewall is between",
		retry: true,
		place: client,
		sure:  oneOf(`proxyconnect tcp: dial`, `cannot connect to proxy.{0,200}refused`, `ERR_PROXY_CONNECTION_FAILED`),
		text: oneOf(
			`failed to connect to`, `connection refused`, `ECONNREFUSED`, `connect call failed`, `cannot connect to proxy`,
			`ERR_PROXY_CONNECTION_FAILED`,
		),
	},
	{
		name:  "name_resolved_by_client",
		what:  "the client looks the target's name up by itself and finds nothing",
		do:    "use socks5h:// or the http:// address, so that the gateway looks names up",
		place: client,
		text: oneOf(
			`could not resolve host`, `getaddrinfo`, `ENOTFOUND`, `EAI_AGAIN`, `name or service not known`,
			`nodename nor servname`, `no such host`, `temporary failure in name resolution`,
		),
	},
	{
		name: "not_a_proxy_request",
		what: "the request is not one for a proxy, or is malformed",
		do: "configure the address as a proxy of the client, not as the target; send CONNECT " +
			"host:port, or an absolute http:// URI",
		place:    client,
		codes:    []string{"BAD_REQUEST"},
		statuses: []int{400, 417, 505},
	},
	{
		name:     "head_too_large",
		what:     "the head of the request is larger than the gateway takes",
		do:       "send at most 32 KiB and 128 fields; cookies are often too many",
		place:    client,
		codes:    []string{"HEAD_TOO_LARGE"},
		statuses: []int{431},
	},
}
