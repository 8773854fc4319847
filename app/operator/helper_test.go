package operator_test

import "net/netip"

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
