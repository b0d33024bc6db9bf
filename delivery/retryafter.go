package delivery

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// defaultMaxRetryAfter bounds Retry-After where the route does not.
const defaultMaxRetryAfter = time.Hour

// RetryAfter is the delay that an answer's Retry-After asks for, at most limit (0: one hour), and whether it asks for
// one at all. Per RFC 9110, section 10.2.3, it is a number of seconds or an HTTP date. A date is read by the answer's
// own clock, its Date header, and only without one by now: a receiver whose clock is off still gets the pause it means.
// What is neither, negative or past counts as absent.
func RetryAfter(header http.Header, now time.Time, limit time.Duration) (time.Duration, bool) {
	if limit <= 0 {
		limit = defaultMaxRetryAfter
	}
	value := strings.TrimSpace(header.Get(headerRetryAfter))
	if isDigits(value) {
		return seconds(value, limit), true
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	if now.IsZero() || until.Before(now) {
		return 0, false
	}
	return min(until.Sub(now), limit), true
}

// seconds is the delay that a string of digits asks for. What does not fit is the limit.
func seconds(digits string, limit time.Duration) time.Duration {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > int64(limit/time.Second) {
		return limit
	}
	return time.Duration(n) * time.Second
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
