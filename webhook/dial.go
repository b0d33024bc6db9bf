package webhook

import (
	"errors"
	"net"
	"net/url"

	"github.com/queuehook/queuehook/internal/publicnet"
)

// newDialer opens the target's connections, or its proxy's. With DenyPrivate it judges every address at the last
// moment.
func newDialer(cfg Config, host string, proxy *url.URL) (*net.Dialer, error) {
	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout, Resolver: cfg.Resolver}
	if !cfg.DenyPrivate {
		return dialer, nil
	}
	public := publicnet.New()
	isAddress, wrong := public.Host(host)
	switch {
	case wrong != "":
		return nil, errors.New("deny_private: the URL's host " + wrong + "; want " + publicnet.Want)
	case proxy == nil:
		dialer.ControlContext = guard{public}.control
	case !isAddress:
		return nil, errors.New("deny_private: the URL's host is a name, which the proxy would resolve; " +
			"no proxy (NO_PROXY, if it is the environment's) or an address is accepted")
	}
	return dialer, nil
}
