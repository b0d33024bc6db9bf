package redistest

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"github.com/queuehook/queuehook/internal/localca"
)

// Files are absolute paths for a client of a server with Config.TLS, as REDIS_CA_FILE, REDIS_CERT_FILE and
// REDIS_KEY_FILE take them.
type Files struct{ CAFile, CertFile, KeyFile string }

type tlsFiles struct {
	Files

	serverCert, serverKey string
	client                *tls.Config
}

// ClientFiles are empty without Config.TLS.
func (s *Server) ClientFiles() Files { return s.files.Files }

// ClientTLS is what ClientFiles say, a fresh copy; nil without Config.TLS.
func (s *Server) ClientTLS() *tls.Config { return s.files.client.Clone() }

// secure writes an authority and the certificates of server and client into the server's directory.
func (s *Server) secure() error {
	ca, err := localca.New()
	if err != nil {
		return err
	}
	server, err := ca.Issue(localca.Leaf{Name: "redis-server"})
	if err != nil {
		return err
	}
	client, err := ca.Issue(localca.Leaf{Name: "redis client"})
	if err != nil {
		return err
	}
	f := &s.files
	if f.serverCert, f.serverKey, err = server.Write(s.dir, "server"); err != nil {
		return err
	}
	if f.CertFile, f.KeyFile, err = client.Write(s.dir, "client"); err != nil {
		return err
	}
	f.CAFile = filepath.Join(s.dir, "ca.crt")
	if err := os.WriteFile(f.CAFile, ca.PEM(), 0o600); err != nil {
		return fmt.Errorf("write authority: %w", err)
	}
	cert, err := client.TLS()
	if err != nil {
		return err
	}
	f.client = &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert}, ServerName: "127.0.0.1",
	}
	return nil
}
