// Package admin is what a dispatcher shows of itself over HTTP: whether it is alive, whether it takes on work, and its
// metrics. These pages are open to everyone who can reach the address, so they hold no secret, payload or target URL.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of a connection, so that slow or silent clients cannot pile up.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10 // bytes

	// shutdownTimeout bounds the answers under way when Run is told to end.
	shutdownTimeout = 3 * time.Second
)

// Config says what the pages tell.
type Config struct {
	// Addr is the host:port to listen on; an empty host is every interface, port 0 one that the kernel picks.
	Addr string
	// Ready returns nil while tasks can be leased, else why not, such as "starting", "draining" or "redis: connection
	// refused". Strangers read its text. It should return at once, from what is known; nil = always ready.
	Ready func(context.Context) error
	// Note returns one line that the readiness page adds when all is well, or nothing; nil = nothing.
	Note func() string
	// Loops are those that /healthz watches; nil = none.
	Loops *Loops
	// Metrics is what /metrics shows; nil = nothing.
	Metrics prometheus.Gatherer
	// Logger gets the faults of connections and of the metrics page; nil = slog.Default().
	Logger *slog.Logger
}

// Server serves the pages: as an http.Handler, or by itself with Listen and Run.
type Server struct {
	cfg      Config
	handler  http.Handler
	listener net.Listener
}

// New returns the server of these pages. It does not listen yet.
func New(cfg Config) *Server {
	if cfg.Ready == nil {
		cfg.Ready = func(context.Context) error { return nil }
	}
	if cfg.Note == nil {
		cfg.Note = func() string { return "" }
	}
	if cfg.Loops == nil {
		cfg.Loops = new(Loops)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := &Server{cfg: cfg}
	s.handler = s.routes()
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Listen takes the address, so that an address in use shows before anything else starts. Call it once, and then Run,
// which gives the address back.
func (s *Server) Listen(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen for admin: %w", err)
	}
	s.listener = l
	return nil
}

// Addr is the address that Listen took, with the port that the kernel picked; nil before.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Run serves until ctx ends, gives answers under way at most 3 s to end, and returns nil. Any other end is an error.
// Without an earlier Listen, it listens first. It owns the listener and runs once.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()

	select {
	case err := <-served:
		return fmt.Errorf("serve admin: %w", err)
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(bounded)
	if err != nil {
		err = server.Close() // whoever still reads an answer has had the time for it
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("stop admin: %w", err)
	}
	return nil
}
