package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/signing"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// TestEndpoint checks that what a route says about requests reaches the wire.
func TestEndpoint(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	got := make(chan http.Header, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	t.Cleanup(srv.Close)
	u, err := url.Parse(strings.Replace(srv.URL, "://", "://user:password@", 1))
	if err != nil {
		t.Fatal(err)
	}
	var r config.Route
	r.Target.URL = u
	r.HTTP.Headers = map[string]config.Secret{"X-Team": "payments"}
	r.HTTP.Authorization = "Bearer own"
	if r.HTTP.SigningSecrets, err = signing.Parse(secret + " " + secret); err != nil {
		t.Fatal(err)
	}
	r.HTTP.Compat = config.CompatSQSD
	cfg, err := endpoint(r)
	if err != nil {
		t.Fatal(err)
	}
	tg, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tg.Close)
	if err := tg.Deliver(t.Context(), task.New("id", nil, nil)); err != nil {
		t.Fatal(err)
	}
	h := <-got
	if h.Get("Authorization") != "Bearer own" || h.Get("X-Team") != "payments" || h.Get("X-Aws-Sqsd-Msgid") != "id" ||
		len(strings.Fields(h.Get("Webhook-Signature"))) != 2 {
		t.Errorf("%v", h)
	}
	if r.Target.URL.User == nil {
		t.Error("the configuration was changed")
	}

	r.HTTP.DenyPrivate = true
	if cfg, err = endpoint(r); err != nil {
		t.Fatal(err)
	}
	if _, err := webhook.New(cfg); err == nil || !strings.Contains(err.Error(), "deny_private") {
		t.Errorf("a private address is accepted: %v", err)
	}
	r.HTTP.DenyPrivate, r.HTTP.Proxy = false, "ftp://secret"
	if cfg, err = endpoint(r); err != nil {
		t.Fatal(err)
	}
	if _, err := webhook.New(cfg); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
