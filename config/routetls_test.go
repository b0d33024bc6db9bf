package config_test

import (
	"fmt"
	"testing"

	"github.com/queuehook/queuehook/config"
	"github.com/queuehook/queuehook/internal/localca"
)

func TestRoutesFileTLS(t *testing.T) {
	ca, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(localca.Leaf{})
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := pair.Write(t.TempDir(), "client")
	if err != nil {
		t.Fatal(err)
	}
	file := webRoute + fmt.Sprintf("  tls: {ca_file: %s, cert_file: %s, key_file: %s, server_name: n}", writeFile(t, string(ca.PEM())), cert, key)
	all, err := config.ParseRoutes("routes.yaml", []byte(file), base(t), environment)
	if err != nil {
		t.Fatal(err)
	}
	got, err := all[0].HTTP.TLS.Config()
	if err != nil {
		t.Fatal(err)
	}
	if !got.RootCAs.Equal(ca.Pool()) || len(got.Certificates) != 1 || got.ServerName != "n" {
		t.Errorf("%d certificates, server name %q", len(got.Certificates), got.ServerName)
	}
	if none, err := (config.TLS{}).Config(); none != nil || err != nil {
		t.Errorf("the zero TLS: %v, %v", none, err)
	}
}
