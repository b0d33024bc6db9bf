package config

import (
	"crypto/tls"
	"crypto/x509"
	"net/textproto"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/queuehook/queuehook/signing"
	"github.com/queuehook/queuehook/task"
)

// http reads what is only for a URL, over what h says so far.
func (s *section) http(h *HTTP) {
	s.oneOf("method", []string{"POST", "PUT", "PATCH"}, &h.Method)
	const wantType = "a media type such as application/json"
	if raw, found := s.scalar("content_type", wantType); found {
		if !httpguts.ValidHeaderFieldValue(raw) {
			s.problem("content_type", "is not a legal header value", wantType)
		}
		h.ContentType = raw
	}
	s.headers(h)
	s.authorization(h)
	s.signingSecrets(&h.SigningSecrets)
	s.tls(&h.TLS)
	s.proxy(h)
	s.duration("connect_timeout", tick, forever, &h.ConnectTimeout)
	s.integer("quick_retries", 0, maxQuickRetry, &h.QuickRetries)
	if all, found := s.statuses("success", true, 1); found {
		h.Success = all
	}
	if all, found := s.statuses("reject", false, 0); found {
		h.Reject = nil
		for _, r := range all {
			h.Reject = append(h.Reject, r.Low)
		}
	}
	s.boolean("require_ack", &h.RequireAck)
	compat := string(h.Compat)
	s.oneOf("compat", []string{string(CompatSQSD), string(CompatCloudEvents)}, &compat)
	h.Compat = Compat(compat)
}

// headers adds the route's headers to those of the defaults.
func (s *section) headers(h *HTTP) {
	in := s.section("headers")
	if in == nil {
		return
	}
	const want = "a header that a route may set"
	seen := make(map[string]bool)
	for _, name := range in.order {
		key := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			s.wrong(in.keys[name].line, "headers", "has an illegal name", want)
			continue
		case task.ReservedHeader(key):
			in.problem(name, "is not for a route to set", want)
			continue
		case seen[key]:
			in.problem(name, "is given twice", "each header once")
			continue
		}
		seen[key] = true
		value, ok := in.expanded(name)
		if !ok {
			continue
		}
		if h.Headers == nil {
			h.Headers = make(map[string]Secret)
		}
		h.Headers[key] = Secret(value)
		if key == headerAuthorization {
			h.Authorization = ""
		}
	}
}

// signingSecrets reads the key signing_secrets_file. Its secrets replace the environment's.
func (s *section) signingSecrets(to *[]signing.Secret) {
	var path string
	content, found := s.file("signing_secrets_file", "the path of a file that holds "+signing.Form, &path)
	if !found {
		return
	}
	all, err := signing.Parse(content)
	if err != nil {
		s.problem("signing_secrets_file", "names a file that "+err.Error(), signing.Form)
	}
	*to = all
}

// tls reads the key of that name. What it finds replaces the whole of t.
func (s *section) tls(t *TLS) {
	in := s.section("tls")
	if in == nil {
		return
	}
	*t = TLS{}
	const wantCA, wantPEM = "the path of a PEM file of certificates", "the path of a PEM file"
	if content, ok := in.file("ca_file", wantCA, &t.CAFile); ok {
		t.CA = content
		if !x509.NewCertPool().AppendCertsFromPEM([]byte(content)) {
			in.problem("ca_file", "names a file without a certificate in it", wantCA)
		}
	}
	cert, certOK := in.file("cert_file", wantPEM, &t.CertFile)
	key, keyOK := in.file("key_file", wantPEM, &t.KeyFile)
	t.Cert, t.Key = cert, Secret(key)
	switch {
	case in.has("cert_file") != in.has("key_file"):
		present, missing := "cert_file", "key_file"
		if in.has("key_file") {
			present, missing = missing, present
		}
		in.problem(present, "is given without "+missing, "both or neither")
	case certOK && keyOK:
		if _, err := tls.X509KeyPair([]byte(cert), []byte(key)); err != nil {
			in.problem("cert_file", "does not go with key_file: "+err.Error(), "a PEM certificate and its key")
		}
	}
	in.text("server_name", "the name in the certificate", &t.ServerName)
	version := ""
	in.oneOf("min_version", []string{"1.2", "1.3"}, &version)
	switch version {
	case "1.2":
		t.MinVersion = tls.VersionTLS12
	case "1.3":
		t.MinVersion = tls.VersionTLS13
	}
	in.done()
}

// proxy reads how requests leave the network.
func (s *section) proxy(h *HTTP) {
	const want = "a proxy's URL: http://host:port, https://host:port or socks5://host:port"
	if raw, found := s.scalar("proxy", want); found {
		u, err := url.Parse(raw)
		switch {
		case err != nil || u.Hostname() == "" || u.Port() != "" && !validPort(u.Port()) || strings.HasSuffix(u.Host, ":"):
			s.problem("proxy", "is not a URL with a host", want)
		case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
			s.problem("proxy", "has a URL of an unknown kind", want)
		case strings.Trim(u.Path, "/") != "" || strings.ContainsAny(raw, "?#") || strings.Contains(raw, "${"):
			s.problem("proxy", "has more than user, host and port", want)
		}
		h.Proxy = Secret(raw)
	}
	s.boolean("deny_private", &h.DenyPrivate)
	// The proxy dials, so that nothing here could be denied.
	if h.DenyPrivate && s.has("proxy") && s.has("deny_private") {
		s.together("proxy", "deny_private")
	}
}

// parseURL says what is wrong with a URL, without showing any of it.
func parseURL(raw string) (u *url.URL, wrong string) {
	if !strings.HasPrefix(strings.ToLower(raw), "http://") && !strings.HasPrefix(strings.ToLower(raw), "https://") {
		return nil, "is not an http or https URL"
	}
	// A ${NAME} is not replaced here; sent as it is, it would only look like it.
	if strings.Contains(raw, "${") || strings.ContainsAny(raw, " \t\r\n") {
		return nil, "has a URL with characters in it that must be percent-encoded"
	}
	t, err := parseTarget(raw)
	if err != nil {
		return nil, err.Error()
	}
	return t.URL, ""
}

// invocation reads what is only for a Lambda function, over what r says so far.
func (s *section) invocation(r *Route) {
	s.region(&r.Target.Lambda)
	invoke := ""
	s.oneOf("invoke", []string{"sync", "async"}, &invoke)
	if invoke != "" {
		r.Invocation.Async = invoke == "async"
	}
	payload := string(r.Invocation.Payload)
	s.oneOf("payload", []string{string(PayloadRaw), string(PayloadEnvelope), string(PayloadSQSEvent)}, &payload)
	r.Invocation.Payload = Payload(payload)
	in := s.section("batch")
	if in == nil {
		return
	}
	r.Invocation.BatchSize, r.Invocation.BatchWait = 1, 0
	in.integer("size", 1, maxBatchSize, &r.Invocation.BatchSize)
	in.duration("wait", 0, maxBatchWait, &r.Invocation.BatchWait)
	if !in.has("size") {
		in.problem("size", "is missing", integerForm(1, maxBatchSize))
	}
	in.done()
}

// region reads where a function is; its ARN, where that is given, says it already.
func (s *section) region(l *Lambda) {
	const want = "a region such as eu-west-1"
	raw, found := s.scalar("region", want)
	switch {
	case !found:
	case !validRegion(raw):
		s.problem("region", quote(raw)+" is not a region", want)
	case strings.HasPrefix(l.Function, "arn:") && l.Region != raw:
		s.problem("region", "is not the one of the ARN", "it left out")
	default:
		l.Region = raw
	}
}
