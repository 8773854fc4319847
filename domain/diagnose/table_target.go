package diagnose

// captchaTexts are in pages that ask whether a person reads them.
var captchaTexts = []string{
	`captcha`, `are you (a )?human`, `not a robot`, `cf-challenge`, `just a moment\.\.\.`,
	`attention required! \`, ` cloudflare`, `datadome`, `perimeterx`, `px-captcha`, `unusual traffic`,
}

// behindConnection happen behind an open connection.
var behindConnection = []rule{
	{
		name:    "captcha",
		what:    "the target shows a captcha to this exit",
		do:      "rotate the session with the reason captcha, and slow down",
		place:   target,
		sure:    captcha,
		reports: []string{"captcha"},
	},
	{
		name:     "target_blocks",
		what:     "the target refuses the request, often for the exit's address or the client's headers",
		do:       "rotate the session with the reason http_403; if it goes on, change the headers",
		place:    target,
		statuses: []int{401, 403, 406, 451},
		reports:  []string{"block"},
	},
	{
		name:     "target_rate_limits",
		what:     "the target limits how many requests come from this exit",
		do:       "slow down, and rotate the session with the reason http_429",
		retry:    true,
		place:    target,
		statuses: []int{429},
		reports:  []string{"rate_limit"},
	},
	{
		name:     "target_error",
		what:     "the target itself fails",
		do:       "try again later; another exit does not help",
		retry:    true,
		place:    target,
		statuses: []int{500, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526},
	},
	{
		name:     "not_found",
		what:     "the target has nothing at this path",
		do:       "check the URL; the proxy works",
		place:    target,
		statuses: []int{404, 410, 405},
	},
	{
		name:  "certificate_name",
		what:  "the target's certificate is for another name",
		do:    "use the name that the certificate has",
		place: target,
		sure: oneOf(
			`no alternative certificate subject name`, `hostname mismatch`, `doesn't match`,
			`ERR_TLS_CERT_ALTNAME_INVALID`, `x509: certificate is (not )?valid for`,
			`ERR_CERT_COMMON_NAME_INVALID`, `altnames`, `not valid for any names`,
		),
	},
	{
		name:  "certificate_expired",
		what:  "the target's certificate has expired or is not valid yet",
		do:    "only the target's owner can mend it; check the clock of this host too",
		place: target,
		sure: oneOf(
			`certificate (has )?expired`, `certificate is not yet valid`, `CERT_HAS_EXPIRED`,
			`ERR_CERT_DATE_INVALID`, `has expired or is not yet valid`,
		),
	},
	{
		name: "certificate_untrusted",
		what: "the client does not trust the target's certificate",
		do: "give the client the authority's certificate; the gateway does not open TLS, so the " +
			"certificate is the target's own",
		place: target,
		sure: oneOf(
			`self[- ]signed`, `unable to get local issuer`, `signed by unknown authority`,
			`ERR_CERT_AUTHORITY_INVALID`, `UNABLE_TO_VERIFY_LEAF`, `unable to verify the first`,
		),
		text: oneOf(`CERTIFICATE_VERIFY_FAILED`, `certificate problem`, `certificate verify failed`),
	},
	{
		name:  "target_without_tls",
		what:  "the target does not use TLS on this port",
		do:    "use http:// or the target's TLS port",
		place: target,
		text: oneOf(
			`wrong version number`, `first record does not look like a TLS handshake`,
			`packet length too long`, `ERR_SSL_PROTOCOL_ERROR`, `record layer failure`,
			`HTTP request was sent to HTTPS`, `HTTP response to HTTPS`,
		),
	},
	{
		name:  "tls_refused",
		what:  "the target ends the TLS handshake",
		do:    "use a newer TLS of the client; a target that does so for some exits alone refuses them: rotate",
		place: target,
		text: oneOf(
			`handshake failure`, `tls alert`, `tlsv1 alert`, `ssl/tls alert`, `remote error: tls`,
			`ERR_SSL_VERSION_OR_CIPHER`, `unsupported protocol`, `no protocols available`,
			`SSL_ERROR_SYSCALL`, `unexpected eof while reading`,
		),
	},
	{
		name:  "connection_cut",
		what:  "the target ended an open connection",
		do:    "try again; if it happens again, rotate the session: the target may refuse this exit",
		retry: true,
		place: target,
		text: oneOf(
			`reset by peer`, `ECONNRESET`, `empty reply`, `socket hang up`, `\bEOF\b`, `remotedisconnected`,
			`ERR_CONNECTION_(RESET|CLOSED)`, `ERR_EMPTY_RESPONSE`, `other side closed`, `server disconnected`,
		),
	},
	{
		name:     "not_through_the_proxy",
		what:     "the request did not go through the session",
		do:       "check that the client takes its proxy: Node's fetch ignores variables, no_proxy excludes hosts",
		place:    client,
		statuses: []int{401, 403, 429, 451, 503},
	},
}
