package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// authorities checks here what the connection to Redis would stumble over later, so that it is reported with the rest.
func (c *checker) authorities(path string) {
	if path == "" {
		return
	}
	content, err := readFile(path)
	switch {
	case err != nil:
		c.problem("REDIS_CA_FILE", "can't be read: "+err.Error(), "the path of a PEM file")
	case !x509.NewCertPool().AppendCertsFromPEM(content):
		c.problem("REDIS_CA_FILE", "names a file without a certificate in it", "the path of a PEM file of certificates")
	}
}

func (c *checker) certificate(certPath, keyPath string) {
	if !c.isSet("REDIS_CERT_FILE") && !c.isSet("REDIS_KEY_FILE") {
		return
	}
	for set, missing := range map[string]string{"REDIS_CERT_FILE": "REDIS_KEY_FILE", "REDIS_KEY_FILE": "REDIS_CERT_FILE"} {
		if c.isSet(set) && !c.isSet(missing) {
			c.problem(set, "is set without "+c.name(missing), "both or neither")
		}
	}
	cert, certOK := c.pem("REDIS_CERT_FILE", certPath)
	key, keyOK := c.pem("REDIS_KEY_FILE", keyPath)
	if !certOK || !keyOK {
		return
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		c.problem("REDIS_CERT_FILE", fmt.Sprintf("does not go with %s: %s", c.name("REDIS_KEY_FILE"), err),
			"a PEM certificate and its key")
	}
}

// pem reads a file for TLS; false when there is none or it was reported.
func (c *checker) pem(short, path string) ([]byte, bool) {
	if path == "" {
		return nil, false
	}
	content, err := readFile(path)
	if err != nil {
		c.problem(short, "can't be read: "+err.Error(), "the path of a PEM file")
	}
	return content, err == nil
}
