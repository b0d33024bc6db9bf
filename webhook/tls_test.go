package webhook_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/internal/localca"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// mutual is a server that asks for a client certificate of its own authority, and answers one request a connection with
// that certificate's name in a header.
func mutual(t *testing.T) (ca *localca.CA, url string, names chan string) {
	t.Helper()
	ca, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	own, err := issue(t, ca, "server").TLS()
	if err != nil {
		t.Fatal(err)
	}
	names = make(chan string, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names <- r.TLS.PeerCertificates[0].Subject.CommonName + " " + r.Proto
		w.Header().Set("Connection", "close")
	}))
	srv.TLS = &tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12,
	}
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = quiet()
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return ca, srv.URL, names
}

func issue(t *testing.T, ca *localca.CA, name string) localca.Pair {
	t.Helper()
	pair, err := ca.Issue(localca.Leaf{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestClientCertificate(t *testing.T) {
	ca, url, names := mutual(t)
	own, err := issue(t, ca, "client").TLS()
	if err != nil {
		t.Fatal(err)
	}
	tg := newTarget(t, webhook.Config{URL: url, TLS: &tls.Config{
		RootCAs: ca.Pool(), Certificates: []tls.Certificate{own}, ServerName: "localhost", MinVersion: tls.VersionTLS13,
	}})
	wantReason(t, deliver(t, tg, newTask("{}", task.Meta{})), delivery.OK)
	if got := <-names; got != "client HTTP/2.0" {
		t.Errorf("got %q, want the client over HTTP/2", got)
	}
}

func TestTLSOfTheRoute(t *testing.T) {
	ca, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	own, err := issue(t, ca, "server").TLS()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{own}, MaxVersion: tls.VersionTLS12}
	srv.Config.ErrorLog = quiet()
	srv.StartTLS()
	t.Cleanup(srv.Close)
	for name, c := range map[string]struct {
		tls    *tls.Config
		reason delivery.Reason
	}{
		"the system's roots": {nil, delivery.TLS},
		"its authority":      {&tls.Config{RootCAs: ca.Pool()}, delivery.OK},
		"at least 1.2":       {&tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}, delivery.OK},
		"at least 1.3":       {&tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS13}, delivery.TLS},
		"its name":           {&tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}, delivery.OK},
		"another name":       {&tls.Config{RootCAs: ca.Pool(), ServerName: "other.invalid"}, delivery.TLS},
	} {
		t.Run(name, func(t *testing.T) {
			tg := newTarget(t, webhook.Config{URL: srv.URL, TLS: c.tls})
			wantReason(t, deliver(t, tg, newTask("{}", task.Meta{})), c.reason)
		})
	}
}
