package redistest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// freePort finds a port that nothing listens on, below the ranges from which kernels pick ports for outgoing
// connections: a server that restarts must find its port free again.
func freePort() (int, error) {
	const low, high, tries = 12000, 32000, 100
	var last error
	for range tries {
		port := low + rand.IntN(high-low) //nolint:gosec // not a secret
		var lc net.ListenConfig
		ln, err := lc.Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		if err := ln.Close(); err != nil {
			last = err
			continue
		}
		return port, nil
	}
	return 0, fmt.Errorf("find free port: %w", last)
}
