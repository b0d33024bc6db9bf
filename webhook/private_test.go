package webhook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"code.dny.dev/ssrf"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
)

func TestFence(t *testing.T) {
	f := newFence()
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
			if f.public(netip.MustParseAddr(a)) {
				t.Errorf("%s (%s) passes", a, what)
			}
		}
	}
	for _, a := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
		"172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "168.63.129.15", "223.255.255.255",
		"2606:4700:4700::1111", "2a00::1", "2001:4860:4860::8888", "2003::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
	} {
		if !f.public(netip.MustParseAddr(a)) {
			t.Errorf("%s is refused", a)
		}
	}
	if f.public(netip.Addr{}) {
		t.Error("no address passes")
	}
	for _, address := range []string{"127.0.0.1:80", "[::1]:80", "[fe80::1%lo]:80", "", "8.8.8.8", "/run/socket"} {
		if f.control(t.Context(), "tcp", address, nil) == nil {
			t.Errorf("%q passes", address)
		}
	}
	if err := f.control(t.Context(), "tcp4", "8.8.8.8:80", nil); err != nil {
		t.Error(err)
	}
}

func TestDenyPrivateRefusesHosts(t *testing.T) {
	for _, host := range []string{
		"[::1]", "[::ffff:127.0.0.1]", "[::FFFF:7f00:1]", "[64:ff9b::7f00:1]", "[fe80::1%25lo]", "[fd00:ec2::254]", "127.0.0.1",
		"127.0.0.1.", "2130706433", "127.1", "0x7f.1", "0x7F000001", "0177.0.0.1", "0177.0.0.0x1", "010.0.0.1", "127.0.0.1..",
		"169.254.169.254", "localhost", "localhost.", "LOCALHOST", "a.localhost", "a.localhost.", "134744072", "0x", "0.0.0.0", "0",
	} {
		for _, proxy := range []string{"", "http://127.0.0.1:3128"} {
			_, err := New(Config{URL: "http://" + host + ":8080/secret", DenyPrivate: true, Proxy: proxy})
			if err == nil || !strings.HasPrefix(err.Error(), "new webhook: deny_private: ") ||
				!strings.Contains(err.Error(), "; want a public address") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", host, err)
			}
		}
		if _, err := New(Config{URL: "http://" + host + ":8080"}); err != nil {
			t.Errorf("%s without deny_private: %v", host, err)
		}
	}
	for _, host := range []string{"a.example", "a.example.", "8.8.8.8", "[2606:4700:4700::1111]", "1.example", "x0x7f", "0xample.0xg"} {
		if _, err := New(Config{URL: "https://" + host, DenyPrivate: true}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestDenyPrivateBehindAProxy: what a proxy makes of a name cannot be judged.
func TestDenyPrivateBehindAProxy(t *testing.T) {
	const proxy = "http://user:secret@127.0.0.1:3128"
	_, err := New(Config{URL: "https://a.example", DenyPrivate: true, Proxy: proxy})
	if err == nil || !strings.Contains(err.Error(), "which the proxy would resolve") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(srv.Close)
	tg, err := New(Config{URL: "http://8.8.8.8/x", DenyPrivate: true, Proxy: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tg.Close)
	if err := tg.Deliver(t.Context(), task.New("id", nil, nil)); err != nil || asked.Load() != 1 {
		t.Errorf("%v, the proxy was asked %d times", err, asked.Load())
	}
}

// TestRebinding: the name is first that of a public endpoint, whose part 127.0.0.2 plays, and then that of a private
// one on the same port.
func TestRebinding(t *testing.T) {
	var private atomic.Int64
	port := serveOn(t, "127.0.0.2:0", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	serveOn(t, "127.0.0.1:"+port, func(http.ResponseWriter, *http.Request) { private.Add(1) })
	stage := fence{ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.2/32")))}

	for name, second := range map[string][]string{
		"loopback": {"127.0.0.1"}, "mapped": {"::ffff:127.0.0.1"}, "IPv6": {"::1"}, "several": {"127.0.0.1", "127.0.0.3", "::1"},
	} {
		t.Run(name, func(t *testing.T) {
			var zone atomic.Pointer[[]string]
			zone.Store(&[]string{"127.0.0.2"})
			names := resolver(t, &zone)
			tg, err := New(Config{URL: "http://a.example:" + port, DenyPrivate: true, QuickRetries: 1, Resolver: names})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(tg.Close)
			own := tg.transport.DialContext
			tg.transport.DialContext = (&net.Dialer{Resolver: names, ControlContext: stage.control}).DialContext
			if err := tg.Deliver(t.Context(), task.New("id", nil, nil)); err != nil {
				t.Fatal(err)
			}
			refused := func() {
				t.Helper()
				got := delivery.FromError(tg.Deliver(t.Context(), task.New("id", nil, nil)))
				if got.Reason != delivery.Connect || got.Detail != "the address is private" || !got.TargetFault || got.Unknown {
					t.Errorf("got %+v", got)
				}
			}
			zone.Store(&second)
			refused()
			tg.transport.DialContext = own
			refused()
			zone.Store(&[]string{"127.0.0.2"})
			refused() // which the real fence does not take for public
			if n := private.Load(); n != 0 {
				t.Errorf("%d private requests", n)
			}
		})
	}
}

// TestPublicAmongPrivate: a name with addresses of both kinds is reached by the public one only.
func TestPublicAmongPrivate(t *testing.T) {
	var private atomic.Int64
	port := serveOn(t, "127.0.0.2:0", func(http.ResponseWriter, *http.Request) {})
	serveOn(t, "127.0.0.1:"+port, func(http.ResponseWriter, *http.Request) { private.Add(1) })
	var zone atomic.Pointer[[]string]
	zone.Store(&[]string{"127.0.0.1", "127.0.0.2"})
	names := resolver(t, &zone)
	tg, err := New(Config{URL: "http://a.example:" + port, DenyPrivate: true, Resolver: names})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tg.Close)
	stage := fence{ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix("127.0.0.2/32")))}
	tg.transport.DialContext = (&net.Dialer{Resolver: names, ControlContext: stage.control}).DialContext
	if err := tg.Deliver(t.Context(), task.New("id", nil, nil)); err != nil || private.Load() != 0 {
		t.Errorf("%v, %d private requests", err, private.Load())
	}
}

// serveOn serves address and answers its port.
func serveOn(t *testing.T, address string, h http.HandlerFunc) (port string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(h)
	_ = srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// resolver asks a DNS server on loopback, which answers every name with the addresses that zone holds then.
func resolver(t *testing.T, zone *atomic.Pointer[[]string]) *net.Resolver {
	t.Helper()
	server, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		query := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if answer := answerDNS(query[:n], *zone.Load()); answer != nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
}

// answerDNS is nil for what is no query.
func answerDNS(query []byte, addrs []string) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	q := m.Questions[0]
	for _, text := range addrs {
		addr := netip.MustParseAddr(text)
		var body dnsmessage.ResourceBody
		switch {
		case q.Type == dnsmessage.TypeA && addr.Is4():
			body = &dnsmessage.AResource{A: addr.As4()}
		case q.Type == dnsmessage.TypeAAAA && addr.Is6():
			body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: body,
		})
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}
