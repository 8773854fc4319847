package console_test

import "net/netip"

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }
