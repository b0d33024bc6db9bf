package task

import (
	"maps"
	"net/textproto"
	"strings"
)

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
func FieldHeader(key string) bool { return new(Meta).field(key) != nil }

// field is where m keeps an HTTP header, by its canonical name; nil when that is among Headers.
func (m *Meta) field(key string) *string {
	switch key {
	case "Content-Type":
		return &m.ContentType
	case "Traceparent":
		return &m.TraceParent
	case "Tracestate":
		return &m.TraceState
	}
	return nil
}

// AddHeader adds a header that the producer wants to be sent with the task: to the field that there is for it, unless
// that is set already, else to Headers.
func (m *Meta) AddHeader(name, value string) {
	field := m.field(textproto.CanonicalMIMEHeaderKey(name))
	switch {
	case field == nil:
		if m.Headers == nil {
			m.Headers = make(map[string]string)
		}
		m.Headers[name] = value
	case *field == "":
		*field = value
	}
}

// AllHeaders is Headers and what the fields hold, those that are set.
func (m Meta) AllHeaders() map[string]string {
	all := make(map[string]string, len(m.Headers))
	maps.Copy(all, m.Headers)
	for _, name := range []string{"Content-Type", "traceparent", "tracestate"} { // as their specifications write them
		if value := *m.field(textproto.CanonicalMIMEHeaderKey(name)); value != "" {
			all[name] = value
		}
	}
	return all
}
