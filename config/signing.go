package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// signingForm is a secret of https://www.standardwebhooks.com: 24 to 64 bytes in base64.
const (
	signingForm   = "whsec_ and 24 to 64 bytes in padded base64, several parted by spaces or newlines"
	signingPrefix = "whsec_"
	minSigningKey = 24
	maxSigningKey = 64
)

// parseSigningSecrets' error says which secret is wrong, and no part of it.
func parseSigningSecrets(raw string) ([]Secret, error) {
	var all []Secret
	for i, s := range strings.Fields(raw) {
		encoded, found := strings.CutPrefix(s, signingPrefix)
		if !found {
			return nil, fmt.Errorf("has no %s before secret %d", signingPrefix, i+1)
		}
		key, err := base64.StdEncoding.Strict().DecodeString(encoded)
		switch {
		case err != nil:
			return nil, fmt.Errorf("has a secret %d that is not base64", i+1)
		case len(key) < minSigningKey || len(key) > maxSigningKey:
			return nil, fmt.Errorf("has a secret %d of %d bytes", i+1, len(key))
		}
		all = append(all, Secret(s))
	}
	if len(all) == 0 {
		return nil, errors.New("has no secret")
	}
	return all, nil
}

// signingSecrets answers what SIGNING_SECRET or its _FILE says.
func (c *checker) signingSecrets(f secret, file text) []Secret {
	const short = "SIGNING_SECRET"
	raw := c.secret(short, f, file, signingForm)
	c.show(short, raw.String())
	c.show(short+"_FILE", file.raw)
	if raw == "" {
		return nil // not set, or reported
	}
	source := short
	if c.isSet(short + "_FILE") {
		source = short + "_FILE"
	}
	all, err := parseSigningSecrets(string(raw))
	if err != nil {
		c.problem(source, err.Error(), signingForm)
	}
	return all
}
