package admin_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/queuehook/queuehook/admin"
)

func TestCheck(t *testing.T) {
	var loops admin.Loops
	stuck := loops.Watch("lease orders", time.Hour)
	addr, stop := start(t, admin.Config{Loops: &loops, Ready: func(context.Context) error { return errors.New("draining") }})

	if err := admin.Check(t.Context(), addr); err != nil {
		t.Errorf("not ready, but well: %v", err)
	}
	stuck.Done()
	loops.Watch("lease orders", -time.Hour)
	if err := admin.Check(t.Context(), addr); err == nil || !strings.HasSuffix(err.Error(), "503: stuck: lease orders") {
		t.Errorf("stuck: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Check(t.Context(), addr); err == nil {
		t.Error("nobody listens, and the check is content")
	}
}

func TestCheckOfNobody(t *testing.T) {
	if err := admin.Check(t.Context(), ""); err != nil {
		t.Errorf("no address: %v", err)
	}
	for _, addr := range []string{"8080", "127.0.0.1:0", ":0", "[::1"} {
		if err := admin.Check(t.Context(), addr); err == nil {
			t.Errorf("%q: no error", addr)
		}
	}
}

func TestCheckOfEveryInterface(t *testing.T) {
	addr, _ := start(t, admin.Config{Addr: "127.0.0.1:0"})
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"", "0.0.0.0", "[::]", "127.0.0.1", "localhost"} {
		if err := admin.Check(t.Context(), host+":"+port); err != nil {
			t.Errorf("%q: %v", host, err)
		}
	}
}

func TestCheckOfIPv6Alone(t *testing.T) {
	s := admin.New(admin.Config{Addr: "[::1]:0"})
	if err := s.Listen(t.Context()); err != nil {
		t.Logf("this host has no IPv6 loopback: %v", err)
		return
	}
	s.CloseListener()
	addr, _ := start(t, admin.Config{Addr: s.Addr().String()})
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"", "[::]", "[::1]"} {
		if err := admin.Check(t.Context(), host+":"+port); err != nil {
			t.Errorf("%q: %v", host, err)
		}
	}
}

func TestCheckOfSomebodyElse(t *testing.T) {
	other := httptest.NewServer(http.RedirectHandler("/", http.StatusFound))
	defer other.Close()
	err := admin.Check(t.Context(), other.Listener.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("got %v, want the redirect, which is not followed", err)
	}
}

func TestCheckEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-release
	}))
	defer silent.Close()
	defer close(release)
	if err := admin.Check(ctx, silent.Listener.Addr().String()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's end", err)
	}
}
