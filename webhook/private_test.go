package webhook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/publicnet"
	"github.com/queuehook/queuehook/task"
)

func TestGuard(t *testing.T) {
	g := guard{publicnet.New()}
	for _, address := range []string{"127.0.0.1:80", "[::1]:80", "[fe80::1%lo]:80", "", "8.8.8.8", "/run/socket"} {
		if g.control(t.Context(), "tcp", address, nil) == nil {
			t.Errorf("%q passes", address)
		}
	}
	if err := g.control(t.Context(), "tcp4", "8.8.8.8:80", nil); err != nil {
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

// TestDenyPrivateBehindAProxy: nothing here can judge what a proxy resolves a name to.
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

// TestRebinding has a name that is first that of a public endpoint, played by 127.0.0.2, and then that of a private one
// on the same port.
func TestRebinding(t *testing.T) {
	var private atomic.Int64
	port := serveBoth(
		t, func(http.ResponseWriter, *http.Request) { private.Add(1) },
		func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") },
	)

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
			tg.transport.DialContext = (&net.Dialer{Resolver: names, ControlContext: stage}).DialContext
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
			refused() // which the real one does not take for public
			if n := private.Load(); n != 0 {
				t.Errorf("%d private requests", n)
			}
		})
	}
}

// TestPublicAmongPrivate: a name with addresses of both kinds is reached by the public one only.
func TestPublicAmongPrivate(t *testing.T) {
	var private atomic.Int64
	port := serveBoth(
		t, func(http.ResponseWriter, *http.Request) { private.Add(1) }, func(http.ResponseWriter, *http.Request) {},
	)
	var zone atomic.Pointer[[]string]
	zone.Store(&[]string{"127.0.0.1", "127.0.0.2"})
	names := resolver(t, &zone)
	tg, err := New(Config{URL: "http://a.example:" + port, DenyPrivate: true, Resolver: names})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tg.Close)
	tg.transport.DialContext = (&net.Dialer{Resolver: names, ControlContext: stage}).DialContext
	if err := tg.Deliver(t.Context(), task.New("id", nil, nil)); err != nil || private.Load() != 0 {
		t.Errorf("%v, %d private requests", err, private.Load())
	}
}

// stage is a control for which 127.0.0.2 alone is public.
func stage(_ context.Context, _, address string, _ syscall.RawConn) error {
	if host, _, err := net.SplitHostPort(address); err != nil || host != "127.0.0.2" {
		return privateError{}
	}
	return nil
}

// serveBoth serves on 127.0.0.1 and on 127.0.0.2, and answers the port, which is the same. One that is free on the one
// address may be taken on the other.
func serveBoth(t *testing.T, one, two http.HandlerFunc) (port string) {
	t.Helper()
	var lc net.ListenConfig
	for range 20 {
		first, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(first.Addr().String())
		second, err := lc.Listen(t.Context(), "tcp4", "127.0.0.2:"+port)
		if err == nil {
			serveOn(t, first, one)
			serveOn(t, second, two)
			return port
		}
		_ = first.Close()
	}
	t.Fatal("no port is free on both addresses")
	return ""
}

func serveOn(t *testing.T, l net.Listener, h http.HandlerFunc) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	_ = srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
}

// resolver asks a DNS server on loopback, which answers every name with the addresses that zone holds at that time.
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

// answerDNS answers a query; nil when it is none.
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
