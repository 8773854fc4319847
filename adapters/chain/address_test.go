package chain

import (
	"encoding/hex"
	"strings"
	"testing"
)

// vectors are addresses of m/44'/195'/0'/0/i of the mnemonic "abandon" eleven
// times and "about": everybody has its keys.
var vectors = []struct {
	index   uint32
	address string
	bytes   string // hexadecimal, without the prefix
}{
	{0, "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH", "c8599111f29c1e1e061265b4af93ea1f274ad78a"},
	{1, "TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK", "b6e708a39781c96bd399c7657780ff9fe9f052a8"},
	{2, "TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx", "f4f35fff5ca9ee43aca2c57ded9d9ec66ac42dd0"},
	{3, "TRhVWK5XEDkQBDevcdCWW7RW51aRncty4W", "ac892261ed306c7c91ff84895811fa2e5e58333d"},
	{4, "TT2X2yyubp7qpAWYYNE5JQWBtoZ7ikQFsY", "bb1a70862e804bfe2885f6c7efc8fdf3f0148b00"},
}

func TestAddressesAreReadAndWritten(t *testing.T) {
	for _, v := range append(vectors[:len(vectors):len(vectors)], []struct {
		index   uint32
		address string
		bytes   string
	}{
		{0, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "a614f803b6fd780986a42c78ec9c7f77e6ded13c"},
		{0, "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf", "eca9bc828a3005b9a3b909f2cc5c2a54794de05f"},
		{0, "TG3XXyExBkPp9nzdajDZsozEu4BkaSJozs", "42a1e39aefa49290f2b3f9ed688d7cecf86cd6e0"},
	}...) {
		b, err := decodeAddress(v.address)
		if err != nil || hex.EncodeToString(b[:]) != v.bytes {
			t.Errorf("%s is %x, %v; want %s", v.address, b, err, v.bytes)
		}
		if got := encodeAddress(b); got != v.address {
			t.Errorf("%x is written as %s, want %s", b, got, v.address)
		}
	}
	for _, b := range [][20]byte{{}, {19: 1}, [20]byte([]byte(strings.Repeat("\xff", 20)))} {
		if got, err := decodeAddress(encodeAddress(b)); err != nil || got != b {
			t.Errorf("%x is read back as %x, %v", b, got, err)
		}
	}
}

func TestWhatIsNoAddressIsRefused(t *testing.T) {
	const good = "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"
	for name, s := range map[string]string{
		"empty":                        "",
		"the case of the last letter":  "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdh",
		"a character short":            good[:33],
		"a space behind":               good + " ",
		"a space instead of the last":  good[:33] + " ",
		"a space before":               " " + good,
		"a space instead of the first": " " + good[1:],
		"a line break":                 good + "\n",
		"a digit that base58 lacks":    good[:33] + "0",
		"a byte that base58 lacks":     good[:33] + "\xff",
		"a character too many":         "1" + good,
		"lower case":                   strings.ToLower(good),
		"prefix a0, longer":            "27hLryweFFMJe3ppB3ZXus6a6r2UaHRs9kx",
		"prefix 00, Bitcoin's":         "1KGMSZx9eVATCUWK8SEvH32E9KFeZFGnGh",
		"prefix 40, as long as ours":   checked(0x40),
		"prefix 42, as long as ours":   checked(0x42),
		"the form of Ethereum":         "0xa614f803b6fd780986a42c78ec9c7f77e6ded13c",
		"hexadecimal with the prefix":  "41c8599111f29c1e1e061265b4af93ea1f274ad78a",
	} {
		if b, err := decodeAddress(s); err == nil {
			t.Errorf("%s: %q is read as %x", name, s, b)
		}
	}
}
