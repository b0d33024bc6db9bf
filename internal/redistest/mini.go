package redistest

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Mini is a client of an empty in-process Redis (miniredis) that ends with t: the other half of each conformance
// suite, and what `dispatcher dev` runs on.
func Mini(t testing.TB) *redis.Client {
	t.Helper()
	o := baseOptions()
	o.Addr = miniredis.RunT(t).Addr()
	return closing(t, redis.NewClient(o))
}
