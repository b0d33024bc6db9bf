package config

import (
	"regexp"
	"slices"
	"strings"
)

// maxSuggest bounds, in bytes, the names that are compared with ours: no typing error is longer.
const maxSuggest = 64

// scan notes which variables are set and reports those with our prefix that we don't know: a misspelt name would
// otherwise leave a default in force without a word. A value is never shown: it may be a misplaced secret.
func (c *checker) scan(environ []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		short, ours := strings.CutPrefix(name, c.prefix+"_")
		switch {
		case !ours:
		case slices.Contains(c.names, name):
			c.set[name] = true
		case serviceLink(short):
		case servicePort(short):
			// Kubernetes injects tcp://ip:port. Anything else may be someone's idea of ADMIN_ADDR.
			if !strings.Contains(value, "://") {
				c.warn(short, "is not a setting; a Kubernetes Service may inject the name, so it is ignored")
			}
		default:
			c.unknown(name)
		}
	}
}

// serviceLink reports whether Kubernetes injects such a name, here without our prefix, into every container beside a
// Service whose name is the prefix or begins with it. See "environment variables" in
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables.
func serviceLink(short string) bool {
	form := regexp.MustCompile(`(^|_)(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)$`)
	return form.MatchString(short)
}

// servicePort reports whether Kubernetes injects such a name, as serviceLink does, but people may also make it up.
func servicePort(short string) bool { return short == "PORT" || strings.HasSuffix(short, "_PORT") }

func (c *checker) unknown(name string) {
	shown := name
	if strings.ContainsFunc(name, func(r rune) bool { return r < '!' || r > '~' }) || len(name) > maxSuggest {
		shown = quote(name)
	}
	p := Problem{Name: shown, Text: "no such variable; want one of those that " + c.help + " lists"}
	known := make([]string, len(c.names))
	for i, n := range c.names {
		known[i] = strings.TrimPrefix(n, c.prefix+"_")
	}
	if near := nearest(strings.TrimPrefix(name, c.prefix+"_"), known); near != "" {
		p.Text = "no such variable; did you mean " + c.name(near) + "?"
	}
	c.problems = append(c.problems, p)
}

// nearest returns which of the known names a name was probably meant for, or "".
func nearest(typed string, known []string) string {
	if len(typed) > maxSuggest {
		return ""
	}
	best, least := "", 4
	for _, name := range known {
		if d := distance(typed, name); d < least && 2*d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete, replace or swap with their neighbour that make b of a (optimal string
// alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
