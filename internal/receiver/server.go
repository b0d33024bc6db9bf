package receiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/queuehook/queuehook/internal/localca"
)

// Server is a Receiver with a listener.
type Server struct {
	*Receiver

	tls    bool
	ca     *localca.CA
	client localca.Pair
	conns  *conns
	http   *http.Server
	served chan struct{} // closed when the accept loop has ended
}

// Start listens and serves until Close.
func Start(cfg Config) (*Server, error) {
	s := &Server{Receiver: New(cfg), tls: cfg.TLS, served: make(chan struct{})}
	s.http = &http.Server{
		Handler:           s.Receiver,
		ConnContext:       withConn,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // broken connections are its business
		Protocols:         new(http.Protocols),
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(cfg.TLS && !cfg.HTTP1)
	if cfg.TLS {
		if err := s.secure(cfg); err != nil {
			return nil, err
		}
	}
	addr := cfg.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.conns = &conns{Listener: ln, open: map[*conn]struct{}{}}
	go s.serve()
	return s, nil
}

// secure makes the certificates.
func (s *Server) secure(cfg Config) error {
	ca, err := localca.New()
	if err != nil {
		return err
	}
	pair, err := ca.Issue(localca.Leaf{Name: "receiver", Expired: cfg.Expired})
	if err != nil {
		return err
	}
	cert, err := pair.TLS()
	if err != nil {
		return err
	}
	if s.client, err = ca.Issue(localca.Leaf{Name: "client"}); err != nil {
		return err
	}
	s.ca = ca
	s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if cfg.RequireClientCert {
		s.http.TLSConfig.ClientAuth = tls.RequireAndVerifyClientCert
		s.http.TLSConfig.ClientCAs = ca.Pool()
	}
	return nil
}

func (s *Server) serve() {
	defer close(s.served)
	// Both end with ErrServerClosed, or when the listener is closed under them; either way it is over.
	if s.tls {
		_ = s.http.ServeTLS(s.conns, "", "")
	} else {
		_ = s.http.Serve(s.conns)
	}
}

// Close stops listening, ends all connections and whatever hangs, and returns when nothing of the server runs.
func (s *Server) Close() {
	s.Release()
	_ = s.http.Close() // closes listener and connections; there is nothing to do about an error
	<-s.served
	s.conns.closeAll()
	_ = s.WaitIdle(context.Background())
}

// Addr is the address it listens on.
func (s *Server) Addr() string { return s.conns.Addr().String() }

// URL is the root of the server, without a slash at its end.
func (s *Server) URL() string {
	if s.tls {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

// Connections counts the connections accepted so far, open now and open at most.
func (s *Server) Connections() Connections { return s.conns.connections() }

// CAPEM is the certificate to trust, nil without TLS.
func (s *Server) CAPEM() []byte {
	if s.ca == nil {
		return nil
	}
	return s.ca.PEM()
}

// ClientTLS is what a client needs to reach the server, its certificate included; nil without TLS.
func (s *Server) ClientTLS() (*tls.Config, error) {
	if s.ca == nil {
		return nil, nil //nolint:nilnil // as http.Transport takes it
	}
	cert, err := s.client.TLS()
	if err != nil {
		return nil, errors.Join(errors.New("read client certificate"), err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: s.ca.Pool(), Certificates: []tls.Certificate{cert},
	}, nil
}
