package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/egress"
)

// fault is a failure described for the agent. It has its own text because the
// standard library's errors contain addresses.
type fault string

func (f fault) Error() string { return string(f) }

const (
	errURL         fault = "webhook_url is not an absolute https URL"
	errUser        fault = "webhook_url has a user name or password; remove it"
	errPlain       fault = "webhook_url is plain http; use https"
	errNameUnknown fault = "the host of webhook_url does not resolve"
	errNameFailed  fault = "the host of webhook_url cannot be looked up at the moment"
	errClosed      fault = "the endpoint's port is closed"
	errUnreachable fault = "the endpoint's network is not reachable"
	errCertificate fault = "the endpoint's TLS certificate is expired, is for another host, or comes from no " +
		"known authority"
	errTLS      fault = "the endpoint does not use TLS as needed"
	errHungUp   fault = "the endpoint closed the connection before it answered"
	errNoAnswer fault = "the endpoint's answer is not HTTP/1.1 or its head is too large"
)

// refused returns the egress policy's refusal; its messages contain no address.
func refused(err error) fault {
	if e, ok := errors.AsType[*domain.Error](err); ok {
		return fault(e.Message)
	}
	return fault(egress.ErrRefused.Message)
}

func lookupFailed(err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return errNameUnknown
	}
	if errors.Is(err, context.Canceled) || isLocal(err) {
		return err
	}
	return errNameFailed
}

// isLocal reports whether this host is at fault: it is out of sockets or
// memory.
func isLocal(err error) bool {
	for _, number := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}

// explain describes a failed attempt for the agent.
func explain(err error, timeout time.Duration) string {
	if f, ok := errors.AsType[fault](err); ok {
		return string(f)
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("the endpoint did not answer within %v", timeout)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return string(errCertificate)
	}
	if isTLS(err) {
		return string(errTLS)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return string(errClosed)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return string(errUnreachable)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return string(errHungUp)
	}
	return string(errNoAnswer)
}

// isTLS reports a failed handshake. TLS alerts have no exported type and are
// recognized by the operation.
func isTLS(err error) bool {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	e, ok := errors.AsType[*net.OpError](err)
	return ok && (e.Op == "remote error" || e.Op == "local error") || strings.HasPrefix(err.Error(), "tls: ")
}
