package redisconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/queuehook/queuehook/config"
)

var (
	errNoTLS   = errors.New("certificate files are set, but the Redis URL is not rediss://")
	errNoCerts = errors.New("the Redis CA file holds no certificate")
)

// addFiles makes to trust the configured authorities and present the configured certificate.
func addFiles(cfg config.Redis, to *tls.Config) error {
	if cfg.CAFile == "" && cfg.CertFile == "" {
		return nil
	}
	if to == nil {
		return errNoTLS
	}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return fmt.Errorf("read Redis CA file: %w", err)
		}
		to.RootCAs = x509.NewCertPool()
		if !to.RootCAs.AppendCertsFromPEM(pem) {
			return errNoCerts
		}
	}
	if cfg.CertFile == "" {
		return nil
	}
	show := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load Redis client certificate: %w", err)
		}
		return &pair, nil
	}
	if _, err := show(nil); err != nil {
		return err
	}
	to.GetClientCertificate = show // read anew for each connection: certificates are renewed while a dispatcher runs
	return nil
}
