package config

import (
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/queuehook/queuehook/keyspace"
)

// forever is the upper bound of a duration that has none.
const forever = time.Duration(math.MaxInt64)

// checker gathers what is wrong with an environment, and how each variable was understood. Its methods take names
// without the prefix and are called in the table's order, once for each variable.
type checker struct {
	prefix   string
	help     string          // the command that lists the variables
	names    []string        // of every variable, in the table's order
	set      map[string]bool // names of the variables that the environment has
	problems []Problem
	warnings []string
	settings Settings
}

// read fills env from the process and scans the process for names that env does not have; help is the command that lists
// those it has.
func read(prefix, help string, env any) (*checker, error) {
	if err := envconfig.Process(prefix, env); err != nil {
		return nil, fmt.Errorf("read environment: %w", err)
	}
	c := &checker{prefix: prefix, help: help, set: make(map[string]bool)}
	for _, v := range variables(prefix, env) {
		c.names = append(c.names, v.Name)
	}
	c.scan(os.Environ())
	return c, nil
}

func (c *checker) name(short string) string { return c.prefix + "_" + short }

func (c *checker) isSet(short string) bool { return c.set[c.name(short)] }

// problem records that a variable is wrong. Neither text may hold a part of a secret.
func (c *checker) problem(short, wrong, want string) {
	c.problems = append(c.problems, Problem{Name: c.name(short), Text: wrong + "; want " + want})
}

func (c *checker) warn(short, text string) {
	c.warnings = append(c.warnings, c.name(short)+": "+text)
}

// good reports whether nothing is wrong with a variable so far.
func (c *checker) good(short string) bool {
	return !slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Name == c.name(short) })
}

func (c *checker) show(short, value string) {
	c.settings = append(c.settings, Setting{Name: c.name(short), Value: value})
}

// empty returns whether a variable is set to nothing, which it also records as a problem: most often a template lost
// its value.
func (c *checker) empty(short, raw, want string) bool {
	if raw != "" || !c.isSet(short) {
		return false
	}
	c.problem(short, "is set but empty", want+", or unset it")
	return true
}

func (c *checker) text(short string, f text, want string) string {
	c.empty(short, f.raw, want)
	c.show(short, f.raw)
	return f.raw
}

func (c *checker) integer(short string, f integer, least, most int) int {
	want := integerForm(least, most)
	switch {
	case c.empty(short, f.raw, want):
	case f.err != nil:
		c.problem(short, quote(f.raw)+" "+f.err.Error(), want)
	case f.value < least || f.value > most:
		c.problem(short, quote(f.raw)+" is out of range", want)
	}
	c.show(short, f.raw)
	return f.value
}

func (c *checker) boolean(short string, f boolean) bool {
	const want = "true or false"
	switch {
	case c.empty(short, f.raw, want):
	case f.err != nil:
		c.problem(short, quote(f.raw)+" "+f.err.Error(), want)
	}
	c.show(short, strconv.FormatBool(f.value))
	return f.value
}

func (c *checker) duration(short string, f text, least, most time.Duration) time.Duration {
	want := durationForm(least, most)
	value, wrong := parseDuration(f.raw, least, most)
	if !c.empty(short, f.raw, want) && wrong != "" {
		c.problem(short, quote(f.raw)+" "+wrong, want)
	}
	c.show(short, f.raw)
	return value
}

// address accepts what net.Listen does, but the port only in digits, and also nothing at all.
func (c *checker) address(short string, f text) string {
	const want = "host:port or :port with a port from 0 to 65535, or nothing for none"
	if f.raw != "" {
		_, port, err := net.SplitHostPort(f.raw)
		switch {
		case err != nil:
			c.problem(short, quote(f.raw)+" is not an address", want)
		case !validPort(port):
			c.problem(short, quote(f.raw)+" has a bad port", want)
		}
	}
	c.show(short, f.raw)
	return f.raw
}

func (c *checker) list(short string, f list) []string {
	const want = "names separated by spaces, newlines or commas"
	if c.isSet(short) && len(f.value) == 0 {
		c.problem(short, "is set but names nothing", want+", or unset it")
	}
	for _, s := range repeated(f.value) {
		c.problem(short, quote(s)+" is given twice", "each name once")
	}
	c.show(short, strings.Join(f.value, " "))
	return f.value
}

func (c *checker) routes(short string, f routes) []Route {
	for _, err := range f.errs {
		c.problem(short, err.Error(), routeForm)
	}
	shown := make([]string, len(f.value))
	for i, r := range f.value {
		shown[i] = r.Queue + "=" + r.Target.Redacted()
	}
	c.show(short, strings.Join(shown, " "))
	return f.value
}

// queue checks the name of a queue that the named variable holds.
func (c *checker) queue(short, queue string, cluster bool) {
	keys, err := keyspace.New(queue)
	switch {
	case err != nil:
		c.problem(short, err.Error(), "a queue's name as producers push to it")
	case cluster && !keys.Clusterable():
		c.problem(short, "queue "+quote(queue)+" has no hash tag but a }, so its keys can't share a cluster slot",
			"another name, or "+c.name("REDIS_CLUSTER")+"=false")
	}
}

func (e *logEnv) validate(c *checker) Log {
	var l Log
	level := c.text("LOG_LEVEL", e.Level, "debug, info, warn or error")
	switch level {
	case "debug":
		l.Level = slog.LevelDebug
	case "info":
		l.Level = slog.LevelInfo
	case "warn":
		l.Level = slog.LevelWarn
	case "error":
		l.Level = slog.LevelError
	case "": // reported
	default:
		c.problem("LOG_LEVEL", quote(level)+" is not a level", "debug, info, warn or error")
	}
	l.Format = c.text("LOG_FORMAT", e.Format, "json or text")
	if l.Format != LogJSON && l.Format != LogText && l.Format != "" {
		c.problem("LOG_FORMAT", quote(l.Format)+" is not a format", "json or text")
	}
	return l
}

// validPort accepts digits only: service names differ between machines.
func validPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

// quote shows a value that is no secret, on one line and not at any length.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
