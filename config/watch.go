package config

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// RoutesFile is the routes file of a process that runs. Whoever serves the routes calls Check when told to and every few
// seconds; its methods may be called by many goroutines.
type RoutesFile struct {
	path   string
	base   Dispatcher // its Routes are those of ROUTES
	lookup func(string) (string, bool)

	mu     sync.Mutex
	files  []string // what the last look read, in this order
	sum    [sha256.Size]byte
	routes []Route // the last good ones
	err    error   // what is wrong with the file now
}

// Check looks at the file, and at those that it names, by content: a Kubernetes ConfigMap swaps a link, and times say
// little. It answers all routes, those of ROUTES too, that are to be served: the file's when it is good, else the last
// good ones together with the *Error that says why. A bad file is refused whole. changed says that the content is
// another than at the Check before, so that a fault is worth one line in the log, not one every few seconds.
//
// A file that is being written can look complete halfway: it should be replaced by renaming, or be changed as a ConfigMap.
func (f *RoutesFile) Check(ctx context.Context) (routes []Route, changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, fmt.Errorf("check routes file: %w", context.Cause(ctx))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var now reading
	for _, path := range f.files {
		_, _ = now.read(path) // the error is in the sum
	}
	if f.files != nil && now.sum() == f.sum {
		return f.answer(false)
	}
	f.load()
	return f.answer(true)
}

func (f *RoutesFile) answer(changed bool) ([]Route, bool, error) {
	return slices.Concat(f.base.Routes, f.routes), changed, f.err
}

// load reads the file and all that it names.
func (f *RoutesFile) load() {
	var now reading
	routes, err := f.parse(now.read)
	f.files, f.sum, f.err = now.files, now.sum(), err
	if err == nil {
		f.routes = routes
	}
}

func (f *RoutesFile) parse(read func(string) ([]byte, error)) ([]Route, error) {
	content, err := read(f.path)
	if err != nil {
		return nil, &Error{Problems: []Problem{{
			Name: dispatcherPrefix + "_ROUTES_FILE", Text: "can't be read: " + err.Error() + "; want the path of a YAML file",
		}}}
	}
	return parseRoutesFile(f.path, content, f.base, f.lookup, read)
}

// reading remembers what it read: each file once, so that all of one look is of one moment.
type reading struct {
	files   []string
	results map[string]result
}

type result struct {
	content []byte
	err     error
}

func (r *reading) read(path string) ([]byte, error) {
	if known, found := r.results[path]; found {
		return known.content, known.err
	}
	if r.results == nil {
		r.results = make(map[string]result)
	}
	content, err := readLasting(path)
	r.files = append(r.files, path)
	r.results[path] = result{content, err}
	return content, err
}

// readLasting reads a file that is read again and again: a pipe would give its content once, then hold its reader up
// for ever.
func readLasting(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, pathless(err)
	case !info.Mode().IsRegular() && !info.IsDir(): // reading says it of a folder
		return nil, errors.New("not a file that can be read again")
	}
	return readFile(path)
}

// sum is the same for the same files with the same contents.
func (r *reading) sum() [sha256.Size]byte {
	h := sha256.New()
	for _, path := range r.files {
		known := r.results[path]
		fmt.Fprintf(h, "%q %d %v\n", path, len(known.content), known.err)
		_, _ = h.Write(known.content) // a hash takes everything
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// routesFile returns the file that a variable names, not read yet; nil when there is none.
func (c *checker) routesFile(short string, f text) *RoutesFile {
	path := c.text(short, f, "the path of a YAML file")
	if path == "" {
		return nil // or reported
	}
	return &RoutesFile{path: path, lookup: os.LookupEnv}
}

// begin reads the file for the first time, over what d says, and adds its routes to d's.
func (f *RoutesFile) begin(c *checker, d *Dispatcher) {
	const short = "ROUTES_FILE"
	f.base = *d
	f.base.RoutesFile = nil
	f.load()
	if all, ok := errors.AsType[*Error](f.err); ok {
		for _, p := range all.Problems {
			p.variable = c.name(short)
			c.problems = append(c.problems, p)
		}
		return
	}
	d.Routes = slices.Concat(d.Routes, f.routes)
	for _, w := range d.RouteWarnings(f.routes) {
		c.warn(short, w)
	}
}

// RouteWarnings returns what is accepted in routes but worth a log line; free of secrets.
func (d Dispatcher) RouteWarnings(routes []Route) []string {
	var all []string
	for _, r := range routes {
		if r.Timeout > d.ShutdownGrace && r.Timeout != d.Timeout {
			all = append(all, fmt.Sprintf("queue %s: a timeout of %s is above %s_SHUTDOWN_GRACE (%s): a slow attempt can "+
				"be cut at shutdown and repeated", label(r.Queue), r.Timeout, dispatcherPrefix, d.ShutdownGrace))
		}
	}
	return all
}
