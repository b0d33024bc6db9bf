package delivery

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Headers of an answer that say more than its status.
const (
	headerNoRetry    = "Dispatch-No-Retry"
	headerAck        = "Dispatch-Ack"
	headerRetryAfter = "Retry-After"
)

// Range is the statuses from Low to High, both included.
type Range struct{ Low, High int }

// Rules are what a route says about answers. The zero Rules: 200 to 299 is success, nothing is rejected by status.
type Rules struct {
	// Success are the statuses that complete a task; empty = 200 to 299.
	Success []Range
	// Reject are the statuses that bury a task at once. Success wins where both name one.
	Reject []int
	// RequireAck makes a success count only with the header "Dispatch-Ack: ok", so that no task is lost to a proxy, a
	// parking page or a catch-all that answers 200.
	RequireAck bool
	// MaxRetryAfter bounds what Retry-After may ask for; 0 = one hour.
	MaxRetryAfter time.Duration
	// Now is when the answer came. It is read only where Retry-After is a date and the answer has no Date of its own.
	Now time.Time
}

// Classify says what an HTTP answer means. Its order is the order of precedence: success, then "never again", then a
// request to wait, then what the status alone says.
func Classify(status int, header http.Header, rules Rules) Outcome {
	if rules.success(status) {
		return success(status, header, rules)
	}
	if slices.Contains(rules.Reject, status) {
		return answered(Rejected, status, "on the route's reject list")
	}
	if hasValue(header, headerNoRetry, "true") {
		return answered(Rejected, status, headerNoRetry)
	}

	wait, asked := RetryAfter(header, rules.Now, rules.MaxRetryAfter)
	o := byStatus(status, header, asked)
	o.RetryAfter = wait
	return o
}

func (r Rules) success(status int) bool {
	if len(r.Success) == 0 {
		return status >= 200 && status <= 299
	}
	return slices.ContainsFunc(r.Success, func(s Range) bool { return s.Low <= status && status <= s.High })
}

// success is the outcome of a status that the route takes for success. When a required acknowledgement is missing,
// somebody other than the receiver answered, and nothing else in the answer is believed.
func success(status int, header http.Header, rules Rules) Outcome {
	if rules.RequireAck && !hasValue(header, headerAck, "ok") {
		return answered(Target, status, "no "+headerAck)
	}
	return answered(OK, status, "")
}

// byStatus is the outcome of a status that is no success. asked says that a usable Retry-After came with it.
func byStatus(status int, header http.Header, asked bool) Outcome {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusMisdirectedRequest, http.StatusNetworkAuthenticationRequired:
		return answered(Target, status, "")
	case http.StatusTooManyRequests:
		return answered(Throttled, status, "")
	case http.StatusServiceUnavailable:
		if asked {
			return answered(Throttled, status, "")
		}
		fallthrough
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		o := answered(Status, status, "")
		o.TargetFault = true
		return o
	}
	if status >= 300 && status <= 399 {
		return answered(Redirect, status, redirectedTo(header))
	}
	return answered(Status, status, "")
}

func answered(r Reason, status int, detail string) Outcome {
	o := Of(r)
	o.Status, o.Detail = status, clip(detail)
	return o
}

// redirectedTo names the other origin that a redirect points to, since that is how a moved endpoint shows itself; path
// and query may hold secrets.
func redirectedTo(header http.Header) string {
	u, err := url.Parse(header.Get("Location"))
	if err != nil || u.Host == "" || u.Scheme == "" {
		return ""
	}
	return "to " + u.Scheme + "://" + u.Host
}

// hasValue says whether one of the header's values is want, whatever its case and the spaces around it.
func hasValue(header http.Header, name, want string) bool {
	return slices.ContainsFunc(header.Values(name), func(v string) bool {
		return strings.EqualFold(strings.TrimSpace(v), want)
	})
}
