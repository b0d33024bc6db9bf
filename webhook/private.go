package webhook

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// privateError is a connection that deny_private refused. It does not say to which address.
type privateError struct{}

func (privateError) Error() string { return "the address is private" }

// Refusal makes it the detail of the attempt.
func (e privateError) Refusal() string { return e.Error() }

// fence tells addresses of the public Internet from all others: private, loopback, link-local, shared, reserved,
// multicast and the like, by IANA's special-purpose registries, which package ssrf is generated from.
type fence struct{ registry *ssrf.Guardian }

func newFence() fence {
	return fence{ssrf.New(
		ssrf.WithAnyPort(),
		// Azure's host agent: it answers every virtual machine, with its secrets, at an address that IANA calls public.
		ssrf.WithDeniedV4Prefixes(netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32)),
	)}
}

// public says whether addr may be connected to. An address of NAT64 is judged by the IPv4 address in it: networks
// without IPv4 reach the public Internet through such. Those of 6to4 and Teredo are refused, whatever is in them.
func (f fence) public(addr netip.Addr) bool {
	addr = addr.Unmap()
	if ssrf.IPv6NAT64Prefix.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr.IsValid() && f.registry.SafeAddr(addr) == nil
}

// control is a net.Dialer's ControlContext. It sees the address that is about to be connected to, after all look-ups,
// so that a name which changes between a check and the connection (DNS rebinding) gains nothing.
func (f fence) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !f.public(to.Addr()) {
		return privateError{}
	}
	return nil
}

// wantPublic is the form of a host that a fence accepts.
const wantPublic = "want a public address as four decimal numbers or IPv6, or a name, which is judged at each connection"

// host judges a URL's host before any look-up, so that a route which can never work is refused when it is made. It
// answers whether the host is an address rather than a name.
func (f fence) host(host string) (isAddress bool, err error) {
	host = strings.ToLower(strings.TrimRight(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return false, errors.New("deny_private: the URL's host is this host; " + wantPublic)
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil && looksNumeric(host):
		return false, errors.New("deny_private: the URL's host is an address in an unusual form; " + wantPublic)
	case err != nil:
		return false, nil
	case !f.public(addr):
		return true, errors.New("deny_private: the URL's host is a private address; " + wantPublic)
	}
	return true, nil
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
