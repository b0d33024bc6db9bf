package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// TLS says what a connection to an https URL trusts and what it shows. It holds the contents of the files, so that a
// renewed certificate makes another Route.
type TLS struct {
	CAFile, CertFile, KeyFile string // where the contents come from

	CA         string // PEM; trusted instead of the system's authorities; empty = the system's
	Cert       string // PEM; empty if and only if Key is
	Key        Secret // PEM
	ServerName string // the name that is asked for and checked; empty = the URL's host
	MinVersion uint16 // as crypto/tls counts; 0 = Go's least
}

// minVersion is MinVersion as the routes file has it.
func (t TLS) minVersion() string {
	switch t.MinVersion {
	case tls.VersionTLS12:
		return "1.2"
	case tls.VersionTLS13:
		return "1.3"
	}
	return ""
}

// Config returns the settings for crypto/tls, nil for the zero TLS. The contents of a Route that was loaded make no
// error.
func (t TLS) Config() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil //nolint:nilnil // no settings are what a transport takes for its own
	}
	cfg := &tls.Config{ServerName: t.ServerName, MinVersion: max(t.MinVersion, tls.VersionTLS12)}
	if t.CA != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, errors.New("make TLS settings: no certificate among the authorities")
		}
	}
	if t.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
		if err != nil {
			return nil, fmt.Errorf("make TLS settings: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
