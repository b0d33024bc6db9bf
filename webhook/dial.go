package webhook

import (
	"errors"
	"net"
	"net/url"
)

// newDialer opens the target's connections, or its proxy's. With DenyPrivate it judges every address at the last
// moment.
func newDialer(cfg Config, host string, proxy *url.URL) (*net.Dialer, error) {
	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout, Resolver: cfg.Resolver}
	if !cfg.DenyPrivate {
		return dialer, nil
	}
	f := newFence()
	isAddress, err := f.host(host)
	switch {
	case err != nil:
		return nil, err
	case proxy == nil:
		dialer.ControlContext = f.control
	case !isAddress:
		return nil, errors.New("deny_private: the URL's host is a name, which the proxy would resolve; " +
			"no proxy (NO_PROXY, if it is the environment's) or an address is accepted")
	}
	return dialer, nil
}
