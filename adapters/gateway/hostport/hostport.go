// Package hostport represents the target of a client's request. It is shared by the
// protocols that read a target and those that ask an upstream proxy for one.
package hostport

// Target is a name or an IP address without brackets, as the client spelled it,
// and a port from 1 to 65535. Whether it may be reached is decided elsewhere.
type Target struct {
	Host string
	Port uint16
}

// NameByte reports whether c may be part of a host name or an IPv4 address:
// letters, digits, hyphen, dot and underscore, percent-encoding excluded.
func NameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_'
}
