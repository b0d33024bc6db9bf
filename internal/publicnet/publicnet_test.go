package publicnet_test

import (
	"net/netip"
	"testing"

	"github.com/queuehook/queuehook/internal/publicnet"
)

func TestPublic(t *testing.T) {
	r := publicnet.New()
	for what, addrs := range map[string][]string{
		"loopback":             {"127.0.0.1", "127.1.2.3", "127.255.255.255", "::1"},
		"private":              {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1"},
		"link-local":           {"169.254.0.1", "fe80::1", "fe80::1%eth0", "febf::1"},
		"cloud metadata":       {"169.254.169.254", "169.254.170.2", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"},
		"shared":               {"100.64.0.1", "100.127.255.255"},
		"unspecified":          {"0.0.0.0", "0.1.2.3", "::"},
		"multicast":            {"224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"},
		"broadcast, reserved":  {"255.255.255.255", "240.0.0.1"},
		"documentation":        {"192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"},
		"benchmarks":           {"198.18.0.1", "198.19.255.255", "2001:2::1"},
		"protocol assignments": {"192.0.0.8", "192.88.99.1", "2001:10::1", "2001:20::1", "100::1", "5f00::1"},
		"IPv4 in IPv6":         {"::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "::ffff:0:127.0.0.1"},
		"NAT64":                {"64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8", "64:ff9b:1::1"},
		"6to4":                 {"2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1"},
		"Teredo":               {"2001::1", "2001:0:7f00:1::", "2001:0:808:808:0:0:80ff:fffe"},
		"site-local":           {"fec0::1"},
	} {
		for _, a := range addrs {
			if r.Public(netip.MustParseAddr(a)) {
				t.Errorf("%s (%s) passes", a, what)
			}
		}
	}
	for _, a := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
		"172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "168.63.129.15", "223.255.255.255",
		"2606:4700:4700::1111", "2a00::1", "2001:4860:4860::8888", "2003::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
	} {
		if !r.Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is refused", a)
		}
	}
	if r.Public(netip.Addr{}) {
		t.Error("no address passes")
	}
}
