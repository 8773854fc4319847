package session_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

func TestAllowedIPs(t *testing.T) {
	for text, want := range map[string]string{"192.0.2.7": "192.0.2.7/32", " 192.0.2.7/24 ": "192.0.2.0/24", "2001:DB8::1": "2001:db8::1/128",
		"::ffff:192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.0/120": "192.0.2.0/24", "0.0.0.0/0": "0.0.0.0/0"} {
		got, err := session.ParseAllowedIPs([]string{text})
		if err != nil || !slices.Equal(got, []netip.Prefix{netip.MustParsePrefix(want)}) {
			t.Errorf("%q is %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "example.com", "192.0.2.0/33", "192.0.2.256", "fe80::1%eth0", "192.0.2.1-9", "*"} {
		if _, err := session.ParseAllowedIPs([]string{text}); !errors.Is(err, domain.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	list := strings.Split(strings.Repeat("192.0.2.1 ", session.MaxAllowedIPs), " ")[:session.MaxAllowedIPs]
	if _, err := session.ParseAllowedIPs(list); err != nil {
		t.Error(err)
	}
	if _, err := session.ParseAllowedIPs(append(list, "192.0.2.2")); !errors.Is(err, domain.ErrInvalid) {
		t.Errorf("one more: %v", err)
	}
}

func TestReplacePassword(t *testing.T) {
	for status, want := range map[session.Status]error{session.Active: nil, session.Creating: session.ErrNotReady,
		session.Terminated: session.ErrOver, session.Expired: session.ErrOver, session.Failed: session.ErrOver} {
		s, err := session.Session{Status: status, PasswordNo: 3, EndedAt: time.Unix(1, 0)}.ReplacePassword()
		if !errors.Is(err, want) || err == nil && s.PasswordNo != 4 {
			t.Errorf("%s: number %d, %v", status, s.PasswordNo, err)
		}
	}
}
