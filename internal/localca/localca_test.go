package localca_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"testing"

	"github.com/queuehook/queuehook/internal/localca"
)

func TestIssue(t *testing.T) {
	t.Parallel()
	ca, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	verify := func(l localca.Leaf, host string, roots *x509.CertPool, use x509.ExtKeyUsage) error {
		t.Helper()
		pair, err := ca.Issue(l)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := pair.TLS()
		if err != nil {
			t.Fatal(err)
		}
		_, err = cert.Leaf.Verify(x509.VerifyOptions{
			DNSName: host, Roots: roots, KeyUsages: []x509.ExtKeyUsage{use},
		})
		return err
	}

	good := localca.Leaf{Name: "receiver"}
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		if err := verify(good, host, ca.Pool(), x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("server certificate for %s: %v", host, err)
		}
	}
	if err := verify(good, "", ca.Pool(), x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("client certificate: %v", err)
	}
	if err := verify(good, "example.com", ca.Pool(), x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("good for a host that is not loopback")
	}
	if err := verify(good, "localhost", stranger.Pool(), x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("trusted through another authority")
	}
	var invalid x509.CertificateInvalidError
	err = verify(localca.Leaf{Name: "old", Expired: true}, "localhost", ca.Pool(), x509.ExtKeyUsageServerAuth)
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("expired certificate: %v, want x509.Expired", err)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	ca, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(localca.Leaf{Name: "client"})
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, err := pair.Write(t.TempDir(), "client")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		t.Errorf("key file has mode %v, want it closed to others", perm)
	}
}
