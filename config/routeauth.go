package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const headerAuthorization = "Authorization"

// credentials are the keys of which at most one says what Authorization is.
func credentials() []string { return []string{"authorization_file", "basic_auth", "bearer"} }

// authorization reads them. What it finds replaces an Authorization of the defaults, whichever way they say it.
func (s *section) authorization(h *HTTP) {
	value, found := s.authorizationFile()
	if basic, ok := s.basic(); ok {
		value, found = basic, true
	}
	if bearer, ok := s.bearer(); ok {
		value, found = bearer, true
	}
	var given []string
	for _, key := range credentials() {
		if s.has(key) {
			given = append(given, key)
		}
	}
	for i := 1; i < len(given); i++ {
		s.together(given[0], given[i])
	}
	if len(given) > 0 && s.setsHeader(headerAuthorization) {
		s.problem(given[0], "does not go with a header "+headerAuthorization, "only one of the two")
	}
	if !found {
		return
	}
	delete(h.Headers, headerAuthorization)
	h.Authorization = Secret(value)
}

// authority sees to a URL with user information, which is an Authorization, too.
func (s *section) authority(r *Route) {
	if r.Target.URL == nil || r.Target.URL.User == nil {
		return
	}
	for _, key := range credentials() {
		if s.has(key) {
			s.problem(key, "does not go with a user in the URL", "only one of the two")
			return
		}
	}
	if s.setsHeader(headerAuthorization) {
		s.problem("headers", "has an "+headerAuthorization+" beside a user in the URL", "only one of the two")
		return
	}
	delete(r.HTTP.Headers, headerAuthorization)
	r.HTTP.Authorization = ""
}

// setsHeader says whether the section's own headers have a name, whatever its case.
func (s *section) setsHeader(name string) bool {
	e, found := s.keys["headers"]
	if !found {
		return false
	}
	for i := 0; i+1 < len(e.value.Content); i += 2 {
		if strings.EqualFold(e.value.Content[i].Value, name) {
			return true
		}
	}
	return false
}

func (s *section) authorizationFile() (string, bool) {
	const key, want = "authorization_file", "the path of a file that holds the header's whole value"
	var path string
	content, found := s.file(key, want, &path)
	if !found {
		return "", false
	}
	value := trimNewline(content)
	if value == "" || !httpguts.ValidHeaderFieldValue(value) {
		s.problem(key, "names a file whose content is not a legal header value", want)
	}
	return value, true
}

func (s *section) basic() (string, bool) {
	in := s.section("basic_auth")
	if in == nil {
		return "", false
	}
	username, ok := in.expanded("username")
	if !in.has("username") {
		in.problem("username", "is missing", "a user name")
	}
	if ok && strings.Contains(username, ":") {
		in.problem("username", "has a colon", "a user name, which cannot have one")
	}
	password, _ := in.expanded("password") // none is an empty one
	in.done()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password)), true
}

func (s *section) bearer() (string, bool) {
	token, ok := s.expanded("bearer")
	if !ok {
		return "", false
	}
	// RFC 6750, section 2.1
	if !regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`).MatchString(token) {
		s.problem("bearer", "is not a token", "the token alone, or ${NAME} that holds it")
	}
	return "Bearer " + token, true
}

// expanded returns a key's text with every ${NAME} replaced, fit for a header. Nothing of it is ever shown.
func (s *section) expanded(key string) (string, bool) {
	const want = "a text, in which ${NAME} is the value of a variable of the environment and $$ is a $"
	raw, found := s.scalar(key, want)
	if !found {
		return "", false
	}
	value, err := expand(raw, s.lookup)
	switch {
	case err != nil:
		s.problem(key, err.Error(), want)
		return "", false
	case !httpguts.ValidHeaderFieldValue(value):
		s.problem(key, "is not a legal header value", "a text without control characters")
		return "", false
	}
	return value, true
}

// expand replaces each ${NAME} by the variable's value and each $$ by a $. Any other $ is an error, as it may be meant
// either way. The error holds no value, and of the text the names only.
func expand(raw string, lookup func(string) (string, bool)) (string, error) {
	name := regexp.MustCompile(`^\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	var b strings.Builder
	for {
		before, after, found := strings.Cut(raw, "$")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if rest, escaped := strings.CutPrefix(after, "$"); escaped {
			b.WriteByte('$')
			raw = rest
			continue
		}
		m := name.FindStringSubmatch(after)
		if m == nil {
			return "", errors.New("has a $ that begins no ${NAME}")
		}
		value, set := lookup(m[1])
		switch {
		case !set:
			return "", fmt.Errorf("names the variable %s, which is not set", quote(m[1]))
		case value == "":
			return "", fmt.Errorf("names the variable %s, which is set but empty", quote(m[1]))
		}
		b.WriteString(value)
		raw = after[len(m[0]):]
	}
}
