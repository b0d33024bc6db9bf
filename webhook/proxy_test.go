package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/exchange"
	"github.com/queuehook/queuehook/task"
)

// TestProxyRefuses goes through a proxy that wants other credentials.
func TestProxyRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			t.Errorf("the proxy got a %s", r.Method)
		}
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	t.Cleanup(proxy.Close)
	tg, err := New(Config{
		URL: "https://a.example/hook?token=secret", QuickRetries: 1,
		Proxy: strings.Replace(proxy.URL, "://", "://user:secret@", 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tg.Close)
	got := delivery.FromError(tg.Deliver(t.Context(), task.New("id", []byte("{}"), nil)))
	if got.Reason != delivery.Connect || got.Detail != "proxy answered 407" || got.Unknown {
		t.Errorf("got %+v", got)
	}
}

// TestThroughAProxy reaches a name that nobody can resolve, through a proxy that sends everything to one server.
func TestThroughAProxy(t *testing.T) {
	endpoint := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the endpoint was shown the proxy's password")
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(endpoint.Close)
	type asked struct{ Method, Target, Auth string }
	requests := make(chan asked, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- asked{r.Method, r.RequestURI, r.Header.Get("Proxy-Authorization")}
		if r.Method == http.MethodConnect {
			tunnel(t, r, w, endpoint.Listener.Addr().String())
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	trust := endpoint.Client().Transport.(*http.Transport).TLSClientConfig // httptest's servers share it
	credentials := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:pass word"))

	for name, c := range map[string]struct {
		url, proxy string
		want       asked
	}{
		// httptest's certificate is for example.com.
		"https through http":  {"https://example.com/hook", plain.URL, asked{"CONNECT", "example.com:443", credentials}},
		"https through https": {"https://example.com/hook", secure.URL, asked{"CONNECT", "example.com:443", credentials}},
		"http through http":   {"http://a.invalid/hook?x=1", plain.URL, asked{"POST", "http://a.invalid/hook?x=1", credentials}},
		"http through https":  {"http://a.invalid/hook?x=1", secure.URL, asked{"POST", "http://a.invalid/hook?x=1", credentials}},
	} {
		t.Run(name, func(t *testing.T) {
			tg, err := New(Config{URL: c.url, Proxy: strings.Replace(c.proxy, "://", "://user:pass%20word@", 1), TLS: trust})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(tg.Close)
			if err := tg.Deliver(t.Context(), task.New("id", []byte("{}"), nil)); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, <-requests); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// tunnel answers a CONNECT and carries bytes both ways until either side ends.
func tunnel(t *testing.T, r *http.Request, w http.ResponseWriter, to string) {
	t.Helper()
	back, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", to)
	if err != nil {
		t.Error(err)
		return
	}
	defer back.Close()
	w.WriteHeader(http.StatusOK)
	front, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer front.Close()
	go func() { _, _ = io.Copy(front, bufio.NewReader(back)); _ = front.Close() }()
	_, _ = io.Copy(back, buffered)
}

func TestProxyFaults(t *testing.T) {
	for name, c := range map[string]struct {
		proxy  string
		reason delivery.Reason
		detail string
	}{
		"no such name": {"http://user:secret@" + strings.Repeat("a", 64) + ".invalid", delivery.DNS, "proxy: no such host"},
		"refused":      {"http://user:secret@127.0.0.1:1", delivery.Connect, "proxy: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			tg, err := New(Config{URL: "https://a.invalid", Proxy: c.proxy})
			if err != nil {
				t.Fatal(err)
			}
			got := delivery.FromError(tg.Deliver(t.Context(), task.New("id", nil, nil)))
			if got.Reason != c.reason || got.Detail != c.detail {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestProxyFor(t *testing.T) {
	target := &url.URL{Scheme: "https", Host: "a.example"}
	environment := func(req *http.Request) (*url.URL, error) {
		if req.URL != target {
			t.Errorf("asked for %v", req.URL)
		}
		return url.Parse("http://environment:3128")
	}
	broken := func(*http.Request) (*url.URL, error) { return nil, errors.New("invalid proxy address secret") }
	for own, want := range map[string]string{"": "http://environment:3128", "https://u:p@own:3128": "https://u:p@own:3128", "socks5://own": "socks5://own"} {
		if got, err := proxyFor(own, target, environment); err != nil || got.String() != want {
			t.Errorf("%q: got %v, %v", own, got, err)
		}
	}
	for _, own := range []string{"", "secret:3128", "socks4://secret", "http://", "http://secret:99999x/", "//secret"} {
		if got, err := proxyFor(own, target, broken); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, %v", own, got, err)
		}
	}
	if _, err := New(Config{URL: "https://a.example", Proxy: "https://p", TLS: &tls.Config{ServerName: "b.example"}}); err == nil {
		t.Error("a server_name for two servers is accepted")
	}
}

// TestExchangeKeepsTheFirstFault has the deadline come exactly during the wait for a quick retry.
func TestExchangeKeepsTheFirstFault(t *testing.T) {
	var x exchange.Exchange
	if !x.Unsent(t.Context(), &proxyError{502}) {
		t.Fatal("a refused connection counts as sent")
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if got := x.Failed(late, late.Err(), ""); got.Reason != delivery.Connect || got.Detail != "proxy answered 502" {
		t.Errorf("got %+v", got)
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(delivery.ErrShutdown)
	if got := x.Failed(stopped, stopped.Err(), ""); got.Reason != delivery.Shutdown || got.Unknown {
		t.Errorf("got %+v", got)
	}
}
