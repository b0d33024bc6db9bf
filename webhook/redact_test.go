package webhook_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// TestNothingSecretIsShown lets deliveries fail in every way, with the word MARKER in everything secret, and looks for
// it in logs, metrics and what is kept with a dead task.
func TestNothingSecretIsShown(t *testing.T) {
	const header = "HTTP/1.1 500 MARKER\r\nX-Answer: MARKER\r\n"
	answer := func(text string) string {
		return "http://" + listen(t, func(c *net.TCPConn) {
			_, _ = io.CopyN(io.Discard, c, 1)
			_, _ = io.WriteString(c, text)
			_ = c.Close()
		})
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = quiet()
	t.Cleanup(secure.Close)
	proxy, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Proxy", "MARKER")
		w.WriteHeader(http.StatusProxyAuthRequired)
	})
	for name, c := range map[string]struct {
		url, proxy string
		reason     delivery.Reason
	}{
		"refused":                   {"http://" + refused(t), "", delivery.Connect},
		"no such name":              {"https://" + strings.Repeat("a", 64) + ".invalid", "", delivery.DNS},
		"unknown authority":         {secure.URL, "", delivery.TLS},
		"plain HTTP":                {strings.Replace(answer(header+"\r\n"), "http:", "https:", 1), "", delivery.TLS},
		"server error":              {answer(header + "Content-Length: 6\r\n\r\nMARKER"), "", delivery.Status},
		"redirect":                  {answer("HTTP/1.1 307 MARKER\r\nLocation: https://MARKER:MARKER@b.example/MARKER?MARKER#MARKER\r\n\r\n"), "", delivery.Redirect},
		"redirect to rubbish":       {answer("HTTP/1.1 307 MARKER\r\nLocation: http://MARKER:%zz\r\n\r\n"), "", delivery.Redirect},
		"rejected":                  {answer("HTTP/1.1 400 MARKER\r\nDispatch-No-Retry: true\r\nX: MARKER\r\n\r\n"), "", delivery.Rejected},
		"no HTTP":                   {answer("MARKER\r\n\r\n"), "", delivery.Reset},
		"a header without a colon":  {answer("HTTP/1.1 200 OK\r\nMARKER\r\n\r\n"), "", delivery.Reset},
		"an illegal length":         {answer("HTTP/1.1 200 OK\r\nContent-Length: MARKER\r\n\r\n"), "", delivery.Reset},
		"an unknown coding":         {answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: MARKER\r\n\r\n"), "", delivery.Reset},
		"cut":                       {answer(""), "", delivery.Reset},
		"the proxy refuses":         {"https://a.invalid", proxy.URL, delivery.Connect},
		"the proxy answers":         {"http://a.invalid", proxy.URL, delivery.Target},
		"the proxy is away":         {"https://a.invalid", "http://" + refused(t), delivery.Connect},
		"the proxy has no name":     {"https://a.invalid", "http://" + strings.Repeat("a", 64) + ".invalid", delivery.DNS},
		"the proxy does not do TLS": {"https://a.invalid", strings.Replace(proxy.URL, "http:", "https:", 1), delivery.TLS},
		"the proxy talks rubbish":   {"https://a.invalid", answer("MARKER\r\n\r\n"), delivery.Connect},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := webhook.Config{
				URL: c.url + "/MARKER?token=MARKER#MARKER", QuickRetries: 1, Headers: map[string]string{"X-Api-Key": "MARKER"},
				Authorization: "Bearer MARKER", Secrets: parseSecrets(t, secretA),
				TLS: &tls.Config{MinVersion: tls.VersionTLS12},
			}
			if c.proxy != "" {
				cfg.Proxy = strings.Replace(c.proxy, "://", "://MARKER:MARKER@", 1) + "/MARKER"
			}
			tg := newTarget(t, cfg)
			err := tg.Deliver(t.Context(), newTask("MARKER", task.Meta{Headers: map[string]string{"X-Own": "MARKER"}}))
			got := outcome(t, err)
			wantReason(t, got, c.reason)
			if shown := fmt.Sprintf("%v %+v %v %s", err, got, tg, tg); strings.Contains(strings.ToUpper(shown), "MARKER") {
				t.Error(shown)
			}
		})
	}
}
