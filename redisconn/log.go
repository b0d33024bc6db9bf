package redisconn

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogTo sends what go-redis itself logs, for the whole process, to logger at debug level instead of standard error:
// whoever sends a command gets the error too. A main calls it before it opens a client.
func LogTo(logger *slog.Logger) { redis.SetLogger(driverLog{logger}) }

type driverLog struct{ logger *slog.Logger }

// Printf is what go-redis calls.
func (l driverLog) Printf(ctx context.Context, format string, v ...any) {
	if l.logger.Enabled(ctx, slog.LevelDebug) {
		l.logger.DebugContext(ctx, "go-redis", "text", fmt.Sprintf(format, v...))
	}
}
