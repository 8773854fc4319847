package refusal

import (
	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/worker"
)

// The refusals of workers.
var (
	UserNameParameter = &Refusal{Status: 400, Code: CodeUserNameParameter, ProxyError: "http_request_error",
		SOCKS:    socks5.NotAllowed,
		Message:  worker.ErrParameter.Message,
		HowToFix: "the form is " + worker.Grammar}
	WorkerDiffers = &Refusal{Status: 409, Code: CodeWorkerDiffers, ProxyError: "http_request_denied",
		SOCKS:    socks5.NotAllowed,
		Message:  worker.ErrDiffers.Message,
		HowToFix: "leave the word out, or rotate or remove the worker first"}
	WorkerLimit = &Refusal{Status: 429, Code: CodeWorkerLimit, ProxyError: "connection_limit_reached",
		SOCKS:     socks5.NotAllowed,
		Message:   worker.ErrLimit.Message,
		HowToFix:  "remove a worker with DELETE /v1/sessions/{session_id}/workers/{name}, or use a name that exists",
		Permanent: true}
	WorkerExhausted = &Refusal{Status: 402, Code: CodeWorkerExhausted, ProxyError: "http_request_denied",
		SOCKS:    socks5.GeneralFailure,
		Message:  worker.ErrExhausted.Message,
		HowToFix: "use another worker; this one stays as it is until it is removed"}
	WorkerRemoved = &Refusal{Status: 410, Code: CodeWorkerNotFound, ProxyError: "http_request_denied",
		SOCKS:    socks5.GeneralFailure,
		Message:  "this worker was removed",
		HowToFix: "connect again: the first use of the name makes a new worker"}
	ExitLost = &Refusal{Status: 503, Code: CodeExitLost, ProxyError: "proxy_internal_response",
		SOCKS:     socks5.GeneralFailure,
		Message:   worker.ErrExitLost.Message,
		HowToFix:  "rotate the worker with POST /v1/sessions/{session_id}/workers/{name}/rotate",
		Permanent: true}
)
