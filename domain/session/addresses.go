package session

import (
	"net/netip"
	"slices"
	"time"

	"agentproxy/domain"
)

// Live returns how many addresses the session has, without those that ended.
func (s Session) Live() (n int) {
	for _, e := range s.Exits {
		if !e.Ended {
			n++
		}
	}
	return n
}

// IndexOf returns the place of an address that the session has; -1 if it has not.
func (s Session) IndexOf(addr netip.Addr) int {
	return slices.IndexFunc(s.Exits, func(e Exit) bool { return !e.Ended && addr.IsValid() && e.IP == addr })
}

// MayReplace returns an error unless the session is static and active.
func (s Session) MayReplace() error {
	if s.Type != Static {
		return ErrNotStatic.Msgf("only an address of a static session can be replaced; this one is dynamic: rotate it")
	}
	_, err := s.moveActive()
	return err
}

// ReplaceExit gives an active static session another address in place of one.
func (s Session) ReplaceExit(index int, by netip.Addr) (Session, error) {
	if err := s.MayReplace(); err != nil {
		return s, err
	}
	s.Exits = slices.Clone(s.Exits)
	s.Exits[index] = Exit{IP: by}
	return s, nil
}

// EndExit ends one address of an active static session for good. It returns what is to be refunded, the whole days
// left of what was paid for the address, and moves the rest of that to Kept. After the last one the session has
// no address, and is to be ended.
func (s Session) EndExit(index int, now time.Time) (after Session, refund, kept domain.Money, err error) {
	if err := s.MayReplace(); err != nil {
		return s, 0, 0, err
	}
	paid := s.paid() / domain.Money(s.Live())
	if now.Before(s.ExpiresAt) {
		refund = s.unusedDays(paid, now)
	}
	kept = paid - refund
	s.Exits = slices.Clone(s.Exits)
	s.Exits[index].Ended = true
	s.Money.Kept += kept
	return s, refund, kept, nil
}

// TakeOver returns the session with what its provider has of its order now: an address that is not there any more is
// replaced by one that is new. Addresses that ended stay so. changed is false if it has all addresses already.
func (s Session) TakeOver(has []Exit) (after Session, changed bool) {
	var fresh []netip.Addr
	for _, e := range has {
		if !slices.ContainsFunc(s.Exits, func(own Exit) bool { return own.IP == e.IP }) {
			fresh = append(fresh, e.IP)
		}
	}
	exits := slices.Clone(s.Exits)
	for i, own := range exits {
		if own.Ended || len(fresh) == 0 || slices.Contains(has, Exit{IP: own.IP}) {
			continue
		}
		exits[i].IP, fresh, changed = fresh[0], fresh[1:], true
	}
	s.Exits = exits
	return s, changed
}
