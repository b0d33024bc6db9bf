package config

import "github.com/queuehook/queuehook/signing"

// signingSecrets returns what SIGNING_SECRET or its _FILE says.
func (c *checker) signingSecrets(f secret, file text) []signing.Secret {
	const short = "SIGNING_SECRET"
	raw := c.secret(short, f, file, signing.Form)
	c.show(short, raw.String())
	c.show(short+"_FILE", file.raw)
	if raw == "" {
		return nil // not set, or reported
	}
	source := short
	if c.isSet(short + "_FILE") {
		source = short + "_FILE"
	}
	all, err := signing.Parse(string(raw))
	if err != nil {
		c.problem(source, err.Error(), signing.Form)
	}
	return all
}
