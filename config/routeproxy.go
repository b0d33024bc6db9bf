package config

import (
	"cmp"
	"net/url"

	"golang.org/x/net/http/httpproxy"

	"github.com/queuehook/queuehook/internal/publicnet"
)

// private sees to what deny_private demands of the host and of the proxy. A name is judged when it is connected to, which
// a proxy would do, and of which nothing would be known here.
func (s *section) private(r *Route) {
	if !r.HTTP.DenyPrivate {
		return
	}
	isAddress, wrong := publicnet.New().Host(r.Target.URL.Hostname())
	own, deny := s.has("proxy"), s.has("deny_private")
	switch {
	case wrong != "":
		s.problem("url", "has a host that "+wrong+", which deny_private forbids", publicnet.Want)
	case isAddress:
	case r.HTTP.Proxy != "" && own != deny: // both in one section, this or the defaults, are reported there
		key, other := "proxy", "deny_private"
		if deny {
			key, other = other, key
		}
		s.problem(key, "does not go with "+other+" of the defaults", "only one of the two")
	case r.HTTP.Proxy == "" && s.proxied(r.Target.URL):
		key := "url"
		if deny {
			key = "deny_private"
		}
		s.problem(key, "has the environment's proxy between, which would resolve the name that deny_private is to judge",
			"the host in NO_PROXY, or no deny_private")
	}
}

// proxied says whether requests to u go through the environment's proxy, as package net/http decides it.
func (p *routesParser) proxied(u *url.URL) bool {
	get := func(upper, lower string) string {
		a, _ := p.lookup(upper)
		b, _ := p.lookup(lower)
		return cmp.Or(a, b)
	}
	environment := httpproxy.Config{
		HTTPProxy:  get("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: get("HTTPS_PROXY", "https_proxy"),
		NoProxy:    get("NO_PROXY", "no_proxy"),
		CGI:        get("REQUEST_METHOD", "REQUEST_METHOD") != "",
	}
	proxy, err := environment.ProxyFunc()(u)
	return err == nil && proxy != nil // one that is no URL is refused where it is used
}
