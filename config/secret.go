package config

import (
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
)

// redacted stands wherever a secret would.
const redacted = "(redacted)"

// maxFile bounds what is read of a file that a variable names, in bytes: it may be /dev/zero.
const maxFile = 1 << 20

// Secret is a text that prints, logs and marshals as "(redacted)", or as nothing when it is empty. Convert it to a
// string to use it.
type Secret string

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText hides the secret from JSON and from logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// secret returns the value of a variable or, instead, of the file that its _FILE names. It does not show it.
func (c *checker) secret(short string, f secret, file text, want string) Secret {
	value := f.raw
	if c.empty(short, f.raw, want) {
		value = ""
	}
	fromFile := short + "_FILE"
	if !c.isSet(fromFile) {
		return Secret(value)
	}
	const wantFile = "the path of a file that holds the value"
	switch {
	case c.isSet(short):
		c.problem(short, "is set together with "+c.name(fromFile), "only one of the two")
	case c.empty(fromFile, file.raw, wantFile):
	default:
		return Secret(c.secretFile(fromFile, file.raw, wantFile))
	}
	return ""
}

func (c *checker) secretFile(short, path, want string) string {
	content, err := readFile(path)
	if err != nil {
		c.problem(short, "can't be read: "+err.Error(), want)
		return ""
	}
	value := trimNewline(string(content))
	if value == "" {
		c.problem(short, "names an empty file", want)
	}
	return value
}

// trimNewline takes one newline off, of either kind: editors and echo end the last line, which is not the secret's.
func trimNewline(content string) string {
	return strings.TrimSuffix(strings.TrimSuffix(content, "\n"), "\r")
}

// readFile reads a file that the operator named. Its errors leave the path out, since an operator may have put the
// secret itself in the place of its path.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator chooses which file is read
	if err != nil {
		return nil, pathless(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, pathless(err)
	}
	if len(content) > maxFile {
		return nil, errors.New("larger than 1 MiB")
	}
	return content, nil
}

func pathless(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

// redactURL writes a URL without its user information and with only those query values that harmless accepts.
func redactURL(u *url.URL, harmless func(name, value string) bool) string {
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(redacted + "@")
	}
	b.WriteString(u.Host + u.EscapedPath())
	for i, pair := range strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' }) {
		name, value, found := strings.Cut(pair, "=")
		if !found || !harmless(name, value) {
			value = redacted
		}
		b.WriteString([]string{"?", "&"}[min(i, 1)])
		if found {
			b.WriteString(name + "=")
		}
		b.WriteString(value)
	}
	return b.String()
}
