package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/queuehook/queuehook/keyspace"
)

// routesParser reads one routes file.
type routesParser struct {
	yamlFile
	base   Dispatcher
	lookup func(string) (string, bool)  // of the environment
	read   func(string) ([]byte, error) // of a file that the routes file names
	first  map[string]string            // where each queue stands
}

// ParseRoutes reads the content of a routes file; problems show its name. What the file does not say is taken from base,
// and a queue that base.Routes has already is a problem. Where headers and credentials say ${NAME}, lookup knows the
// value. The files that it names are read. The error is an *Error with all that is wrong, by line; then there are no
// routes.
//
// YAML is taken as it is written, not as a parser may read it: true and false are the only booleans, numbers are
// decimal, and nothing without quotes turns into another type. Anchors, aliases, merge keys, tags, repeated keys and second
// documents are refused. What routes share goes into defaults: a route's retry and headers extend those of defaults key by
// key, its other values replace them.
func ParseRoutes(
	name string, content []byte, base Dispatcher, lookup func(string) (string, bool),
) ([]Route, error) {
	return parseRoutesFile(name, content, base, lookup, readFile)
}

func parseRoutesFile(
	name string, content []byte, base Dispatcher, lookup func(string) (string, bool), read func(string) ([]byte, error),
) ([]Route, error) {
	p := &routesParser{
		yamlFile: yamlFile{name: label(name)}, base: base, lookup: lookup, read: read, first: make(map[string]string),
	}
	for _, r := range base.Routes {
		p.first[r.Queue] = dispatcherPrefix + "_ROUTES"
	}
	var all []Route
	if root := p.document(content); root != nil {
		all = p.routes(root)
	}
	if len(p.problems) > 0 {
		return nil, &Error{Problems: p.problems}
	}
	return all, nil
}

func (p *routesParser) routes(root *yaml.Node) []Route {
	top := p.mapping(root, "", "")
	if top == nil {
		return nil
	}
	defaults := p.base.routeDefaults()
	if s := top.section("defaults"); s != nil {
		s.settings(&defaults)
		s.backoff(defaults.Retry, p.base.Retry)
		for _, key := range []string{"queue", "url", "lambda"} {
			if s.has(key) {
				s.asked = append(s.asked, key)
				s.problem(key, "is not for all routes", "it in a route")
			}
		}
		s.done()
	}
	const want = "a list of routes, or [] for none"
	items, found := top.list("routes", want)
	if !found && !top.has("routes") {
		top.problem("routes", "is missing", want)
	}
	top.done()
	all := make([]Route, 0, len(items))
	for i, n := range items {
		r := defaults.clone()
		p.route(n, fmt.Sprintf("routes[%d]", i), &r)
		all = append(all, r.narrow())
	}
	return all
}

// route reads a route into r, which holds the defaults.
func (p *routesParser) route(n *yaml.Node, path string, r *Route) {
	s := p.mapping(n, path, "")
	if s == nil {
		return
	}
	if e, found := s.keys["queue"]; found && e.value.Kind == yaml.ScalarNode && !absent(e.value) {
		s.queue = label(e.value.Value)
	}
	before := r.Retry
	s.name(&r.Queue)
	s.target(&r.Target)
	http, function := s.settings(r)
	switch {
	case s.has("url") && !s.has("lambda"):
		s.foreign(function, "is for a Lambda function", "it with lambda only")
	case s.has("lambda") && !s.has("url"):
		s.foreign(http, "is for an HTTP endpoint", "it with url only")
	}
	s.authority(r)
	s.backoff(r.Retry, before)
	s.agree(r)
	s.done()
}

// name reads the queue.
func (s *section) name(queue *string) {
	const want = "a queue's name as producers push to it"
	s.text("queue", want, queue)
	if !s.has("queue") {
		s.problem("queue", "is missing", want)
	}
	if *queue == "" {
		return
	}
	keys, err := keyspace.New(*queue)
	switch {
	case err != nil:
		s.problem("queue", err.Error(), want)
	case s.base.Redis.Cluster && !keys.Clusterable():
		s.problem("queue", "has no hash tag but a }, so its keys can't share a cluster slot", "another name")
	}
	if first, twice := s.first[*queue]; twice {
		s.problem("queue", "has a route in "+first+", too", "one route per queue")
		return
	}
	s.first[*queue] = fmt.Sprintf("%s (line %d)", s.path, s.line)
}

// target reads where to.
func (s *section) target(t *Target) {
	const wantURL = "an absolute http or https URL"
	const wantFunction = "NAME[:QUALIFIER] or a function's ARN"
	if raw, found := s.scalar("url", wantURL); found {
		u, wrong := parseURL(raw)
		if wrong != "" {
			s.problem("url", wrong, wantURL)
		}
		t.URL = u
	}
	region := t.Lambda.Region
	if raw, found := s.scalar("lambda", wantFunction); found {
		parsed, err := parseLambda(raw)
		if err != nil {
			s.problem("lambda", err.Error(), wantFunction)
		}
		*t = Target{URL: t.URL, Lambda: parsed.Lambda}
		if t.Lambda.Region == "" {
			t.Lambda.Region = region
		}
	}
	switch {
	case s.together("url", "lambda"):
	case !s.has("url") && !s.has("lambda"):
		s.problem("", "has no target", "url or lambda")
	}
}

// foreign records the keys of a section that another kind of target has.
func (s *section) foreign(keys []string, wrong, want string) {
	for _, key := range keys {
		if s.has(key) {
			s.problem(key, wrong, want)
		}
	}
}

// agree sees to what keys mean together, wherever each comes from, after all were read.
func (s *section) agree(r *Route) {
	if r.Ordered {
		r.Concurrency = 1 // whatever it says: that there is one in flight is what ordered means
	}
	if s.has("lambda") {
		if r.Invocation.Payload != PayloadSQSEvent {
			if s.has("batch") {
				s.problem("batch", "is for one form of payload", "payload: "+string(PayloadSQSEvent)+" with it")
			}
			r.Invocation.BatchSize, r.Invocation.BatchWait = 1, 0
		}
		if r.Ordered {
			if s.has("batch") && r.Invocation.BatchSize > 1 {
				s.problem("batch", "is above 1 in an ordered route", "it left out, or ordered: false")
			}
			r.Invocation.BatchSize, r.Invocation.BatchWait = 1, 0
		}
		return
	}
	if r.Target.URL == nil {
		return // reported
	}
	if r.Target.URL.Scheme != "https" {
		if s.has("tls") {
			s.problem("tls", "is for an https URL", "it with https only")
		}
		r.HTTP.TLS = TLS{}
	}
	s.private(r)
	for _, status := range r.HTTP.Reject {
		for _, success := range r.HTTP.succeeding() {
			if success.Low <= status && status <= success.High {
				at := "reject"
				if !s.has(at) && s.has("success") {
					at = "success"
				}
				s.problem(at, fmt.Sprintf("makes %d a success and a rejection", status), "each status in one list")
			}
		}
	}
}

// succeeding returns the statuses that complete a task.
func (h HTTP) succeeding() []StatusRange {
	if h.Success == nil {
		return []StatusRange{{Low: 200, High: 299}}
	}
	return slices.Clone(h.Success)
}
