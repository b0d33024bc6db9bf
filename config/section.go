package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// section is a mapping in the routes file. Its methods look keys up. A key that is missing leaves its target as it is,
// and so does a wrong one, which is recorded. The keys that were asked for are the ones that are accepted, see done.
type section struct {
	*routesParser
	path  string // routes[2].retry; empty = the file's root
	queue string // whose route it is, fit to be shown; empty = none
	line  int
	keys  map[string]entry
	order []string // the keys as they stand
	asked []string
}

type entry struct {
	line  int // of the key
	value *yaml.Node
}

// mapping returns a node's keys, nil when it is no mapping, which is recorded.
func (p *routesParser) mapping(n *yaml.Node, path, queue string) *section {
	s := &section{routesParser: p, path: path, queue: queue, line: n.Line, keys: make(map[string]entry)}
	if n.Kind != yaml.MappingNode {
		p.problem(n.Line, s.at("")+"is not a mapping; want key: value pairs")
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			p.problem(key.Line, s.at("")+"has a key that is not text; want key: value pairs")
			continue
		}
		if first, twice := s.keys[key.Value]; twice {
			p.problem(key.Line, s.at(key.Value)+fmt.Sprintf("stands at line %d, too; want each key once", first.line))
			continue
		}
		s.keys[key.Value] = entry{key.Line, value}
		s.order = append(s.order, key.Value)
	}
	return s
}

// at is how a problem names a key of the section, or the section.
func (s *section) at(key string) string {
	where := s.path
	if key != "" {
		where = strings.TrimPrefix(where+"."+label(key), ".")
	}
	if s.queue != "" {
		where += " (queue " + s.queue + ")"
	}
	if where == "" {
		return ""
	}
	return where + ": "
}

// problem records that a key is wrong.
func (s *section) problem(key, wrong, want string) {
	line := s.line
	if e, found := s.keys[key]; found {
		line = e.line
	}
	s.wrong(line, key, wrong, want)
}

func (s *section) wrong(line int, key, wrong, want string) {
	s.routesParser.problem(line, s.at(key)+wrong+"; want "+want)
}

func (s *section) has(key string) bool {
	_, found := s.keys[key]
	return found
}

// together records it when two keys that exclude each other are both there.
func (s *section) together(a, b string) bool {
	if !s.has(a) || !s.has(b) {
		return false
	}
	if s.keys[a].line > s.keys[b].line {
		a, b = b, a
	}
	s.problem(b, "does not go with "+a, "only one of the two")
	return true
}

// done records the keys that nobody asked for.
func (s *section) done() {
	for _, key := range s.order {
		if slices.Contains(s.asked, key) {
			continue
		}
		text := "no such key; want one of " + strings.Join(slices.Sorted(slices.Values(s.asked)), ", ")
		if near := nearest(key, s.asked); near != "" {
			text = "no such key; did you mean " + near + "?"
		}
		s.routesParser.problem(s.keys[key].line, s.at(key)+text)
	}
}

// value returns what a key holds; nothing is recorded as a problem.
func (s *section) value(key, want string) (entry, bool) {
	s.asked = append(s.asked, key)
	e, found := s.keys[key]
	if found && e.value.Kind == yaml.ScalarNode && absent(e.value) {
		s.problem(key, "has no value", want)
		return e, false
	}
	return e, found
}

// absent says whether a scalar is nothing: empty, or null without quotes.
func absent(n *yaml.Node) bool { return n.Value == "" || n.ShortTag() == "!!null" }

// scalar returns the text that a key holds, as it was written.
func (s *section) scalar(key, want string) (string, bool) {
	e, found := s.value(key, want)
	if found && e.value.Kind != yaml.ScalarNode {
		s.problem(key, "is not a single value", want)
		return "", false
	}
	if !found {
		return "", false
	}
	return e.value.Value, true
}

func (s *section) text(key, want string, to *string) {
	if raw, found := s.scalar(key, want); found {
		*to = raw
	}
}

func (s *section) oneOf(key string, accepted []string, to *string) {
	want := strings.Join(accepted, ", ")
	raw, found := s.scalar(key, want)
	switch {
	case !found:
	case !slices.Contains(accepted, raw):
		s.problem(key, quote(raw)+" is not accepted", want)
	default:
		*to = raw
	}
}

func (s *section) boolean(key string, to *bool) {
	const want = "true or false"
	switch raw, found := s.scalar(key, want); {
	case !found:
	case raw != "true" && raw != "false":
		s.problem(key, quote(raw)+" is neither true nor false", want)
	default:
		*to = raw == "true"
	}
}

func (s *section) integer(key string, least, most int, to *int) {
	want := integerForm(least, most)
	raw, found := s.scalar(key, want)
	if !found {
		return
	}
	// What YAML may take for octal, 010, or strconv for the same as 5, +5, is none that we know.
	if !regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`).MatchString(raw) {
		s.problem(key, quote(raw)+" is not a decimal number", want)
		return
	}
	if n, err := strconv.Atoi(raw); err != nil || n < least || n > most {
		s.problem(key, quote(raw)+" is out of range", want)
	} else {
		*to = n
	}
}

func (s *section) duration(key string, least, most time.Duration, to *time.Duration) {
	want := durationForm(least, most)
	if raw, found := s.scalar(key, want); found {
		d, wrong := parseDuration(raw, least, most)
		if wrong != "" {
			s.problem(key, quote(raw)+" "+wrong, want)
			return
		}
		*to = d
	}
}

// list returns the nodes of a list, and whether there is one.
func (s *section) list(key, want string) ([]*yaml.Node, bool) {
	e, found := s.value(key, want)
	if found && e.value.Kind != yaml.SequenceNode {
		s.problem(key, "is not a list", want)
		return nil, false
	}
	if !found {
		return nil, false
	}
	return e.value.Content, true
}

// section returns the mapping that a key holds, or nil.
func (s *section) section(key string) *section {
	e, found := s.value(key, "key: value pairs")
	if !found {
		return nil
	}
	path := strings.TrimPrefix(s.path+"."+key, ".")
	return s.mapping(e.value, path, s.queue)
}

// file returns the contents of the file that a key names, and sets its path.
func (s *section) file(key, want string, path *string) (string, bool) {
	raw, found := s.scalar(key, want)
	if !found {
		return "", false
	}
	*path = raw
	content, err := s.read(raw)
	switch {
	case err != nil:
		s.problem(key, "can't be read: "+err.Error(), want)
	case len(content) == 0:
		s.problem(key, "names an empty file", want)
	}
	return string(content), err == nil && len(content) > 0
}
