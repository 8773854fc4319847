package exitfacts

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"agentproxy/app/cache"
	"agentproxy/domain/exit"
)

// The bounds of the questions to lists.
const (
	listTimeout  = 2 * time.Second // of a question
	listsAtOnce  = 32              // questions under way
	answersKept  = 100_000
	answersStand = time.Hour
)

// List is a DNS list of addresses, as RFC 5782 describes.
type List struct {
	Zone     string
	Label    string // by which it is shown
	Resolver string // host:port of a DNS server; empty is the system's
}

// lists asks lists and keeps their answers.
type lists struct {
	answers cache.Cache[question, bool]
	slots   chan struct{}
}

type question struct {
	list List
	addr netip.Addr
}

func newLists() lists {
	return lists{answers: cache.New(cache.Bounds[question, bool]{Most: answersKept, Written: answersStand}),
		slots: make(chan struct{}, listsAtOnce)}
}

// facts returns whether a list has an address, as facts, and whether it did not answer.
func (l lists) facts(ctx context.Context, list List, addr netip.Addr) (k exit.Known, silent bool) {
	listed, err := l.listed(ctx, list, addr)
	switch {
	case err != nil:
		return k, true
	case listed:
		k.Listed = []string{list.Label}
	default:
		k.Listed = []string{}
	}
	return k, false
}

// listed reports whether an address is on a list. Callers at once share a question; a failure is not kept.
func (l lists) listed(ctx context.Context, list List, addr netip.Addr) (bool, error) {
	return l.answers.Load(ctx, question{list, addr}, func(ctx context.Context, q question) (bool, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
		defer cancel()
		select {
		case l.slots <- struct{}{}:
			defer func() { <-l.slots }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
		return ask(ctx, q.list, q.addr)
	})
}

// errRefused is a list's refusal to answer this resolver or this many questions.
var errRefused = errors.New("the list refuses to answer")

// refusal has the answers by which lists refuse: at Spamhaus 127.255.255.252, .254 and .255.
var refusal = netip.MustParsePrefix("127.255.255.0/24")

// ask asks a list. An A record means listed (RFC 5782, 2.1), and no such name not listed.
func ask(ctx context.Context, list List, addr netip.Addr) (bool, error) {
	resolver := net.DefaultResolver
	if list.Resolver != "" {
		resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, list.Resolver)
		}}
	}
	answers, err := resolver.LookupNetIP(ctx, "ip4", queryName(addr, list.Zone))
	if failed := (*net.DNSError)(nil); errors.As(err, &failed) && failed.IsNotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the list %s: %w", list.Label, err)
	}
	for _, a := range answers {
		if refusal.Contains(a.Unmap()) {
			return false, errRefused
		}
	}
	return len(answers) > 0, nil
}

// queryName returns the name by which a list is asked about an address: its octets, or for IPv6 its nibbles, from the
// last to the first, in the list's zone (RFC 5782, 2.1 and 2.4).
func queryName(addr netip.Addr, zone string) string {
	var b strings.Builder
	if addr.Is4() {
		a := addr.As4()
		fmt.Fprintf(&b, "%d.%d.%d.%d.", a[3], a[2], a[1], a[0])
	} else {
		a := addr.As16()
		text := hex.EncodeToString(a[:])
		for i := len(text) - 1; i >= 0; i-- {
			b.WriteByte(text[i])
			b.WriteByte('.')
		}
	}
	return b.String() + strings.TrimSuffix(zone, ".") + "."
}
