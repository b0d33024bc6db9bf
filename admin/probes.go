package admin

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"unicode"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	metricsPath = "/metrics"

	// maxScrapes bounds the metrics pages that are made at once.
	maxScrapes = 4
	// maxLine bounds one line of a probe's answer, in bytes.
	maxLine = 200
)

// routes is every page there is; all others are 404.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+healthPath, s.health)
	mux.HandleFunc("GET "+readyPath, s.ready)
	mux.Handle("GET "+metricsPath, promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.ContinueOnError, // one bad series must not blind the operator to the others
		MaxRequestsInFlight: maxScrapes,
	}))
	return mux
}

// health is 200 while every loop goes on. Redis may be away meanwhile: a restart would not bring it back.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if stuck := s.cfg.Loops.Stuck(); len(stuck) > 0 {
		answer(w, http.StatusServiceUnavailable, "stuck: "+strings.Join(stuck, ", "))
		return
	}
	answer(w, http.StatusOK, "ok")
}

// ready is 200 while tasks can be leased.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if err := s.cfg.Ready(r.Context()); err != nil {
		answer(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	text := "ok"
	if note := s.cfg.Note(); note != "" {
		text += "; " + note
	}
	answer(w, http.StatusOK, text)
}

func answer(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, line(text)) // a client that went away has nothing to be told
}

// line makes one short printable line of a text.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.TrimSpace(text))
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "..."
	}
	return text
}
