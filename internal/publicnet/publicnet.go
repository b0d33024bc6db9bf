// Package publicnet tells public addresses from private ones, for routes with deny_private.
package publicnet

import (
	"net/netip"
	"strings"

	"code.dny.dev/ssrf"
)

// Registry tells addresses of the public Internet from all others: private, loopback, link-local, shared, reserved,
// multicast and the like, by IANA's special-purpose registries, which package ssrf is generated from.
type Registry struct{ special *ssrf.Guardian }

// New returns a Registry.
func New() Registry {
	return Registry{ssrf.New(
		ssrf.WithAnyPort(),
		// Azure's host agent: it answers every virtual machine, with its secrets, at an address that IANA calls public.
		ssrf.WithDeniedV4Prefixes(netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32)),
	)}
}

// Public says whether addr may be connected to. An address of NAT64 is judged by the IPv4 address in it: networks
// without IPv4 reach the public Internet through such. Those of 6to4 and Teredo are refused, whatever is in them.
func (r Registry) Public(addr netip.Addr) bool {
	addr = addr.Unmap()
	if ssrf.IPv6NAT64Prefix.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr.IsValid() && r.special.SafeAddr(addr) == nil
}

// Want is the form of a host that Host finds nothing wrong with.
const Want = "a public address as four decimal numbers or IPv6, or a name, which is judged at each connection"

// Host judges a URL's host before any look-up, so that a route which can never work is refused when it is read. It
// answers whether the host is an address rather than a name, and what is wrong with it.
func (r Registry) Host(host string) (isAddress bool, wrong string) {
	host = strings.ToLower(strings.TrimRight(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return false, "is this host"
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil && looksNumeric(host):
		return false, "is an address in an unusual form"
	case err != nil:
		return false, ""
	case !r.Public(addr):
		return true, "is a private address"
	}
	return true, ""
}

// looksNumeric says whether some resolver may read host as an IPv4 address: 127.1, 2130706433, 0x7f.1. As in the URL
// standard of the WHATWG the last label decides, since no top-level domain is a number.
func looksNumeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
