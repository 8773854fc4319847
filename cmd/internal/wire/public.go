package wire

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/gateway/hostport"
)

// publicTargets returns where the service is reached from outside: the gateway, the admin
// pages by their further names and, outside development mode, the API.
func publicTargets(s configfile.Settings) []hostport.Target {
	list := []hostport.Target{{Host: s.PublicHost, Port: uint16(s.PublicPort)}}
	admin := ownListeners(s.AdminAddr)[0].Port()
	for _, name := range s.AdminHosts {
		list = append(list, target(name, admin))
	}
	public, err := url.Parse(s.PublicURL)
	if s.Dev || err != nil || public.Host == "" {
		return list
	}
	port := uint16(80)
	if public.Scheme == "https" {
		port = 443
	}
	return append(list, target(public.Host, port))
}

// target splits a host with or without a port.
func target(text string, port uint16) hostport.Target {
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		host = text
	}
	if n, err := strconv.ParseUint(number, 10, 16); err == nil {
		port = uint16(n)
	}
	if addr, err := netip.ParseAddr(trimBrackets(host)); err == nil {
		host = addr.String()
	}
	return hostport.Target{Host: host, Port: port}
}

// trimBrackets removes the brackets of an IPv6 address without a port.
func trimBrackets(host string) string {
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}
