package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"agentproxy/domain/diagnose"
)

// Page is how a target answered through a proxy, without what it answered.
type Page struct {
	Status       int   `json:"status"`
	Bytes        int   `json:"bytes"` // of the body, at most 256 KiB
	MS           int64 `json:"ms"`
	LooksBlocked bool  `json:"looks_blocked"`
}

// The bounds of a fetch.
const (
	fetchTime    = 20 * time.Second
	maxPage      = 256 << 10 // bytes
	maxAddress   = 2000      // bytes
	maxRedirects = 5
)

// errAddress refuses what is not an address of a page.
var errAddress = invalid("url", "must be http:// or https:// with a host, without credentials, of at most %d bytes",
	maxAddress)

// gatewayReason finds the reason with which the gateway refuses a tunnel.
var gatewayReason = regexp.MustCompile(`\b([A-Z]+(?:_[A-Z]+)+): [ -~]{1,120}$`)

// tlsFault finds why TLS with the page failed: its text has no address but that of the page.
var tlsFault = regexp.MustCompile(`\b(?:tls|x509): [ -~]{1,200}`)

// Fetch fetches a page through a proxy, whose address has the credentials. The body is looked at and
// dropped. An error has no credentials.
func Fetch(ctx context.Context, proxy, page string) (Page, error) {
	target, err := url.Parse(page)
	if err != nil || target.Host == "" || target.User != nil || len(page) > maxAddress ||
		target.Scheme != "http" && target.Scheme != "https" {
		return Page{}, errAddress
	}
	through, err := url.Parse(proxy)
	if err != nil {
		return Page{}, unknownProxy
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	client := http.Client{
		Transport: &http.Transport{Proxy: http.ProxyURL(through), DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return Page{}, errAddress
	}
	began := time.Now()
	resp, err := client.Do(r)
	if err != nil {
		return Page{}, notFetched(err)
	}
	defer resp.Body.Close()
	if code := resp.Header.Get("Proxy-Status"); len(code) >= len(ownStatus) && code[:len(ownStatus)] == ownStatus {
		return Page{}, &refusal{Code: "PAGE_NOT_REACHED", Message: "the gateway answered " + resp.Status, HowToFix: askWhy}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		return Page{}, notFetched(err)
	}
	return Page{Status: resp.StatusCode, Bytes: len(body), MS: time.Since(began).Milliseconds(),
		LooksBlocked: diagnose.LooksBlocked(resp.StatusCode, string(body))}, nil
}

const (
	// ownStatus begins the Proxy-Status of an answer of the gateway itself.
	ownStatus = "agentproxy"
	askWhy    = "Call diagnose: it has the cause and what to do."
)

// notFetched words why a page was not fetched. Other text of the error may have an address.
func notFetched(err error) error {
	r := &refusal{Code: "PAGE_NOT_REACHED", Message: "the page was not reached", Retryable: true, HowToFix: askWhy}
	var cause error = err
	if u, ok := errors.AsType[*url.Error](err); ok {
		cause = u.Err
	}
	if m := gatewayReason.FindString(cause.Error()); m != "" {
		r.Message = "the gateway answered " + m
	} else if m := tlsFault.FindString(cause.Error()); m != "" {
		r.Message, r.Retryable = "the page was not reached: "+m, false
		r.HowToFix = "Call diagnose with this message as error_text; another exit does not help."
	} else if errors.Is(err, context.DeadlineExceeded) {
		r.Message = "the page did not answer in time"
	}
	return r
}
