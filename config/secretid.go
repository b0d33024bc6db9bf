package config

import "strings"

const secretForm = "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME, which may go on with :JSON-KEY:STAGE:VERSION as in ECS" //nolint:gosec // no secret

// SecretID names a secret of AWS Secrets Manager, or a part of one, as ECS's valueFrom does:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/secrets-envvar-secrets-manager.html. The zero value names
// none.
type SecretID struct {
	ARN     string // of the secret, without what follows
	Region  string
	Key     string // of the JSON object that the secret is; empty = the secret is the value
	Stage   string // empty = AWSCURRENT
	Version string // empty = that of the stage
}

// secretID does not show the text that it refuses: it may be the secret itself.
func (c *checker) secretID(short string, f text) SecretID {
	if c.empty(short, f.raw, secretForm) || f.raw == "" {
		c.show(short, "")
		return SecretID{}
	}
	const region, name, suffixed = 3, 6, 10
	parts := strings.Split(f.raw, ":")
	good := len(parts) == name+1 || len(parts) == suffixed
	for i, part := range parts {
		good = good && (part != "" || i > name) && !strings.ContainsAny(part, " \t\r\n")
	}
	if !good || parts[0] != "arn" || parts[2] != "secretsmanager" || parts[5] != "secret" {
		c.problem(short, "is not the ARN of a secret of AWS Secrets Manager", secretForm)
		c.show(short, redacted)
		return SecretID{}
	}
	c.show(short, f.raw)
	id := SecretID{ARN: strings.Join(parts[:name+1], ":"), Region: parts[region]}
	if len(parts) == suffixed {
		id.Key, id.Stage, id.Version = parts[name+1], parts[name+2], parts[name+3]
	}
	return id
}
