// Package chain tests the gateway's way through upstream proxies with proxies
// that others have written: squid and tinyproxy for HTTP, microsocks for SOCKS5.
package chain
