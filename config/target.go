package config

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// Target is where tasks are delivered: an HTTP endpoint or a Lambda function. It prints, logs and marshals without
// anything that may be secret.
type Target struct {
	URL    *url.URL // scheme http or https, a host, no fragment; nil for a Lambda function
	Lambda Lambda   // zero for an HTTP endpoint
}

// Lambda names a function of AWS Lambda.
type Lambda struct {
	Function  string // a name, or an ARN without qualifier
	Qualifier string // version or alias; empty = unqualified
	Region    string // the ARN's; empty = the environment's
}

// String is scheme://host, or lambda: and the function: fit for logs and errors.
func (t Target) String() string {
	switch {
	case t.URL != nil:
		return t.URL.Scheme + "://" + t.URL.Host
	case t.Lambda.Function == "":
		return ""
	case t.Lambda.Qualifier == "":
		return "lambda:" + t.Lambda.Function
	}
	return "lambda:" + t.Lambda.Function + ":" + t.Lambda.Qualifier
}

// Redacted is the whole target without user information and query: fit to be shown to the operator. A path that is a
// secret by itself, as in some webhook services, is shown.
func (t Target) Redacted() string {
	if t.URL == nil {
		return t.String()
	}
	u := *t.URL
	u.RawQuery = ""
	s := redactURL(&u, nil)
	if t.URL.RawQuery != "" {
		s += "?" + redacted
	}
	return s
}

// MarshalText is String, for JSON and logs.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// targetLike reports whether a text begins like a target.
func targetLike(raw string) bool {
	lower := strings.ToLower(raw)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") ||
		strings.HasPrefix(lower, "lambda:")
}

// parseTarget's errors hold no part of the text: with a fault in it, host and port may be parts of a password.
func parseTarget(raw string) (Target, error) {
	if function, ok := strings.CutPrefix(raw, "lambda:"); ok {
		return parseLambda(function)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return Target{}, errors.New("has a bad URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return Target{}, errors.New("has a target of an unknown kind")
	case u.Hostname() == "":
		return Target{}, errors.New("has a URL without a host")
	case u.Port() != "" && !validPort(u.Port()) || strings.HasSuffix(u.Host, ":"):
		return Target{}, errors.New("has a URL with a bad port")
	case u.RawPath != "" && u.EscapedPath() != u.RawPath:
		// Encoding the path anew would also undo a %2C or a %2F in it: another URL than the one written.
		return Target{}, errors.New("has a URL with characters in its path that must be percent-encoded")
	case strings.Contains(raw, "#"):
		return Target{}, errors.New("has a URL with a fragment, which is never sent (a # in a password is written %23)")
	}
	return Target{URL: u}, nil
}

const regionForm = `[a-z]+(?:-[a-z]+)+-[0-9]+`

func validRegion(raw string) bool { return regexp.MustCompile(`^` + regionForm + `$`).MatchString(raw) }

// parseLambda accepts the forms of FunctionName and Qualifier of
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html, partial ARNs left out: they read like a name with
// two qualifiers.
func parseLambda(raw string) (Target, error) {
	const name, qualifier = `[A-Za-z0-9_-]{1,64}`, `(?::(\$LATEST(?:\.PUBLISHED)?|[A-Za-z0-9_-]{1,128}))?`
	plain := regexp.MustCompile(`^(` + name + `)` + qualifier + `$`)
	if m := plain.FindStringSubmatch(raw); m != nil {
		return Target{Lambda: Lambda{Function: m[1], Qualifier: m[2]}}, nil
	}
	arn := regexp.MustCompile(`^(arn:aws[a-z-]*:lambda:(` + regionForm + `):[0-9]{12}:function:` + name + `)` +
		qualifier + `$`)
	if m := arn.FindStringSubmatch(raw); m != nil {
		return Target{Lambda: Lambda{Function: m[1], Region: m[2], Qualifier: m[3]}}, nil
	}
	return Target{}, errors.New("has a bad Lambda function name, qualifier or ARN")
}
