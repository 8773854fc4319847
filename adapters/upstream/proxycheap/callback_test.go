package proxycheap_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/fake/proxycheap"
)

func TestCallbacksAreVerified(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	p := newProvider(t, s, nil).(ports.Callbacks)
	verify := func(c proxycheap.Call) error {
		refs, err := p.Callback(c.Header, c.Body, time.Now())
		if len(refs) != 0 {
			t.Errorf("refs %v of an event that names none", refs)
		}
		return err
	}
	for _, mode := range []proxycheap.Mode{proxycheap.Once, proxycheap.Duplicate, proxycheap.OutOfOrder, proxycheap.Unsigned, proxycheap.Forged, proxycheap.Never} {
		s.SetWebhook(mode)
		orderLive(t, p.(ports.Static), "ord_"+string(mode))
		calls := s.Callbacks()
		n := 6 // three addresses, two steps each
		switch mode {
		case proxycheap.Duplicate:
			n = 12
		case proxycheap.Never:
			n = 0
		}
		if len(calls) != n {
			t.Errorf("%s: %d calls, want %d", mode, len(calls), n)
		}
		for _, c := range calls {
			err := verify(c)
			bad := mode == proxycheap.Unsigned || mode == proxycheap.Forged
			if bad && !errors.Is(err, domain.ErrInvalid) || !bad && err != nil {
				t.Errorf("%s: %v", mode, err)
			}
		}
	}
	good := proxycheap.Sign("proxy.status.changed", "evt_1", []byte(`{"proxyId":1}`), proxycheap.CallbackSecret)
	for name, change := range map[string]func(*proxycheap.Call){
		"another body":     func(c *proxycheap.Call) { c.Body = []byte(`{"proxyId":2}`) },
		"another event":    func(c *proxycheap.Call) { c.Header.Set("Webhook-Event", "proxy.bandwidth.added") },
		"another id":       func(c *proxycheap.Call) { c.Header.Set("Webhook-Id", "evt_2") },
		"no id":            func(c *proxycheap.Call) { c.Header.Del("Webhook-Id") },
		"half a signature": func(c *proxycheap.Call) { c.Header.Set("Webhook-Signature", c.Header.Get("Webhook-Signature")[:39]) },
		"an empty one":     func(c *proxycheap.Call) { c.Header.Set("Webhook-Signature", "sha256=") },
		"another algorithm": func(c *proxycheap.Call) {
			c.Header.Set("Webhook-Signature", strings.Replace(c.Header.Get("Webhook-Signature"), "sha256", "sha1", 1))
		},
		"no hexadecimal": func(c *proxycheap.Call) { c.Header.Set("Webhook-Signature", "sha256=zz") },
		"no JSON": func(c *proxycheap.Call) {
			*c = proxycheap.Sign("proxy.status.changed", "evt_1", []byte(`proxy 1`), proxycheap.CallbackSecret)
		},
		"signed without an id": func(c *proxycheap.Call) {
			*c = proxycheap.Sign("proxy.status.changed", "", c.Body, proxycheap.CallbackSecret)
		},
		"a huge body": func(c *proxycheap.Call) {
			*c = proxycheap.Sign("proxy.status.changed", "evt_1", []byte(`"`+strings.Repeat("x", 70_000)+`"`), proxycheap.CallbackSecret)
		},
	} {
		c := proxycheap.Call{Header: good.Header.Clone(), Body: good.Body}
		change(&c)
		if err := verify(c); !errors.Is(err, domain.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := verify(good); err != nil {
		t.Errorf("as it came: %v", err)
	}
	open := newProvider(t, s, func(s *upstream.Spec) { delete(s.Secrets, "callback_secret") }).(ports.Callbacks)
	empty := proxycheap.Sign("proxy.status.changed", "evt_1", good.Body, "")
	if _, err := open.Callback(empty.Header, empty.Body, time.Now()); !errors.Is(err, domain.ErrInvalid) {
		t.Errorf("without a secret everybody may call: %v", err)
	}
}
