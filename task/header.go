package task

import "strings"

// ReservedHeader says whether an HTTP header, by its canonical name, is never a task's or a route's to set: it frames
// the message or belongs to one connection (RFC 9110, section 7.6.1), or it is how this program speaks.
func ReservedHeader(key string) bool {
	switch key {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade",
		"Http2-Settings", "Expect", "Accept-Encoding", "User-Agent":
		return true
	}
	if FieldHeader(key) {
		return true
	}
	for _, prefix := range []string{"Dispatch-", "Webhook-", "Proxy-"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// FieldHeader says whether a task has a field of its own for an HTTP header, by its canonical name: Meta.ContentType,
// Meta.TraceParent, Meta.TraceState.
func FieldHeader(key string) bool {
	return key == "Content-Type" || key == "Traceparent" || key == "Tracestate"
}
