package config

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const redisForm = "redis://host:6379/0, rediss://host:6379/0 or unix:///path/to/socket"

// Redacted is the URL without user name, password and those of its options that may be secret.
func (r Redis) Redacted() string {
	u, err := url.Parse(string(r.URL))
	if err != nil {
		return r.URL.String()
	}
	return redactURL(u, func(option, value string) bool {
		harmless := []string{
			"addr", "db", "dial_timeout", "master_name", "pool_size", "protocol", "read_timeout",
			"skip_verify", "write_timeout",
		}
		return slices.Contains(harmless, option) && !strings.ContainsAny(value, "@%")
	})
}

func (e *redisEnv) validate(c *checker) Redis {
	r := Redis{URL: c.secret("REDIS_URL", e.URL, e.URLFile, redisForm)}
	c.show("REDIS_URL", r.Redacted())
	c.show("REDIS_URL_FILE", e.URLFile.raw)
	r.Cluster = c.boolean("REDIS_CLUSTER", e.Cluster)
	r.Username = c.text("REDIS_USERNAME", e.Username, "a user name")
	r.Password = c.secret("REDIS_PASSWORD", e.Password, e.PasswordFile, "a password")
	c.show("REDIS_PASSWORD", r.Password.String())
	c.show("REDIS_PASSWORD_FILE", e.PasswordFile.raw)
	r.SentinelPassword = c.secret("REDIS_SENTINEL_PASSWORD", e.SentinelPassword, e.SentinelPasswordFile, "a password")
	c.show("REDIS_SENTINEL_PASSWORD", r.SentinelPassword.String())
	c.show("REDIS_SENTINEL_PASSWORD_FILE", e.SentinelPasswordFile.raw)
	const wantPath = "the path of a PEM file"
	r.CAFile = c.text("REDIS_CA_FILE", e.CAFile, wantPath)
	r.CertFile = c.text("REDIS_CERT_FILE", e.CertFile, wantPath)
	r.KeyFile = c.text("REDIS_KEY_FILE", e.KeyFile, wantPath)

	c.authorities(r.CAFile)
	c.certificate(r.CertFile, r.KeyFile)
	c.redisURL(r)
	return r
}

// redisURL checks the URL, and what only makes sense with some URLs.
func (c *checker) redisURL(r Redis) {
	if r.URL == "" {
		return // reported
	}
	source := "REDIS_URL"
	if c.isSet("REDIS_URL_FILE") {
		source = "REDIS_URL_FILE"
	}
	u, err := parseRedisURL(string(r.URL))
	if err != nil {
		c.problem(source, err.Error(), redisForm)
		return
	}
	sentinel := u.Query().Has("master_name")
	switch {
	case r.Cluster && u.Scheme == "unix":
		c.problem("REDIS_CLUSTER", "needs a URL that names a host, not a socket", "false, or a redis:// or rediss:// URL")
	case r.Cluster && sentinel:
		c.problem("REDIS_CLUSTER", "does not go with master_name in the URL", "either a cluster or Sentinels")
	case r.Cluster && database(u) > 0:
		c.problem("REDIS_CLUSTER", "does not go with the URL's database: a cluster has database 0 only", "a URL with /0")
	case sentinel && u.Scheme == "unix":
		c.problem(source, "the URL has master_name with a socket", "a redis:// or rediss:// URL of a Sentinel")
	}
	if r.SentinelPassword != "" && !sentinel {
		c.warn("REDIS_SENTINEL_PASSWORD", "unused, because "+c.name("REDIS_URL")+" has no master_name")
	}
	if u.Scheme == "rediss" {
		// As go-redis reads it.
		if all := u.Query()["skip_verify"]; len(all) > 0 && slices.Contains([]string{"true", "1"}, all[len(all)-1]) {
			c.warn(source, "skip_verify in the URL: whoever is on the way can pass for Redis and read the password; "+
				"trust its authority with "+c.name("REDIS_CA_FILE")+" instead")
		}
		return
	}
	for _, name := range []string{"REDIS_CA_FILE", "REDIS_CERT_FILE", "REDIS_KEY_FILE"} {
		if c.isSet(name) {
			c.problem(name, "is for TLS, which the URL does not ask for", "it unset, or a rediss:// URL")
		}
	}
}

// parseRedisURL says what is wrong without showing any of the text: an unparsable URL may be a password from end to
// end.
func parseRedisURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("the URL can't be parsed (percent-encode special characters in user name and password)")
	}
	_, queryErr := url.ParseQuery(u.RawQuery)
	switch {
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return nil, errors.New("the URL has none of the schemes redis, rediss and unix")
	case strings.Contains(raw, "#"):
		return nil, errors.New("the URL has a # (written %23 in a password)")
	case queryErr != nil:
		return nil, errors.New("the URL has options that can't be parsed")
	case u.Scheme == "unix" && u.Host != "":
		return nil, errors.New("the URL has a host before the socket's path")
	case u.Scheme == "unix" && strings.Trim(u.Path, "/") == "":
		return nil, errors.New("the URL has no path to a socket")
	case u.Scheme == "unix":
		return u, nil
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host")
	case u.Port() != "" && !validPort(u.Port()) || strings.HasSuffix(u.Host, ":"):
		return nil, errors.New("the URL has a bad port")
	case database(u) < 0:
		return nil, errors.New("the URL has a path that is not a database number")
	}
	return u, nil
}

// database returns the database that the URL's path names, 0 when there is none, or -1 when it is no number.
func database(u *url.URL) int {
	path := strings.TrimPrefix(u.Path, "/")
	if path == "" {
		return 0
	}
	n, err := strconv.ParseUint(path, 10, 31)
	if err != nil {
		return -1
	}
	return int(n)
}
