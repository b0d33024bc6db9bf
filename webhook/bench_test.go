package webhook_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

// BenchmarkDeliver compares a delivery with the least that net/http needs for the same request.
func BenchmarkDeliver(b *testing.B) {
	srv, _ := serve(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	payload := strings.Repeat("x", 256)

	b.Run("Deliver", func(b *testing.B) {
		tg := newTarget(b, webhook.Config{URL: srv.URL, QuickRetries: 1})
		tk := newTask(payload, task.Meta{EnqueuedAt: 1_800_000_000_000})
		b.ReportAllocs()
		for b.Loop() {
			if err := tg.Deliver(b.Context(), tk); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("http.Client", func(b *testing.B) {
		transport := &http.Transport{DisableCompression: true}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		b.ReportAllocs()
		for b.Loop() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, srv.URL, bytes.NewReader([]byte(payload)))
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}
