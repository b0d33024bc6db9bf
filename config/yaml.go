package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// yamlFile is one YAML file with all that is wrong with it. It is read as a tree of nodes and never decoded, so that
// each value keeps its line and the text that was written: whether on, 010 or 1_000 mean something is for us to say.
type yamlFile struct {
	name     string // as problems show it
	problems []Problem
	lines    []int // of the problems
}

// problem records what is wrong at a line. The texts may not hold a part of a secret.
func (f *yamlFile) problem(line int, text string) {
	i, _ := slices.BinarySearch(f.lines, line+1)
	f.lines = slices.Insert(f.lines, i, line)
	f.problems = slices.Insert(f.problems, i, Problem{Name: f.name + ":" + strconv.Itoa(line), Text: text})
}

// document returns the root of the one document that content holds, or nil where it recorded why there is none. The
// tree has no anchors, aliases and tags: without them what is written is what is meant, and no small file is a large one.
func (f *yamlFile) document(content []byte) *yaml.Node {
	if !f.legible(content) {
		return nil
	}
	last := 1 + bytes.Count(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
	loader, err := yaml.NewLoader(bytes.NewReader(content))
	if err != nil {
		f.problem(1, "can't be read")
		return nil
	}
	var doc, next yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		f.problem(1, "is empty; want routes: with a list, or routes: [] for none")
		return nil
	case err != nil:
		f.syntax(err, last)
		return nil
	}
	switch err := loader.Load(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		f.syntax(err, last)
		return nil
	default:
		f.problem(next.Line, "begins another document; want one document")
		return nil
	}
	if !f.plain(&doc) {
		return nil
	}
	return doc.Content[0]
}

// legible refuses what YAML does not allow for a text at all, with its line, which the parser does not know.
func (f *yamlFile) legible(content []byte) bool {
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\x7f' {
			f.problem(1+bytes.Count(content[:i], []byte("\n")), "is not plain UTF-8 text; want UTF-8 without control characters")
			return false
		}
		i += size
	}
	return true
}

// syntax records the parser's error. Its messages hold no text of the file, but for those of stages that know the
// names of anchors: an unquoted secret that begins with * looks like one.
//
// What is missing at the end is missing from the last line, not from the one after it.
func (f *yamlFile) syntax(err error, last int) {
	const fallback = "is not YAML"
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		f.problem(1, fallback)
		return
	}
	line := min(max(e.Mark.Line, 1), last)
	switch e.Stage {
	case yaml.ScannerStage, yaml.ParserStage:
		text := fallback + ": " + e.Message
		if !regexp.MustCompile(`^[a-z',.\[\]{}?:<> -]+$`).MatchString(e.Message) {
			text = fallback
		}
		if e.ContextMark.Line > 0 && e.ContextMark.Line < line {
			text += fmt.Sprintf(", in what begins at line %d", e.ContextMark.Line)
		}
		f.problem(line, text+"; want YAML, indented by spaces")
	case yaml.ComposerStage:
		f.problem(line, "has an alias without an anchor; want no aliases, and quotes around a text that begins with *")
	default:
		f.problem(line, fallback)
	}
}

// plain reports whether a tree has no anchors, aliases and tags; it records those that it has.
func (f *yamlFile) plain(n *yaml.Node) bool {
	good := true
	refuse := func(text string) {
		f.problem(n.Line, text)
		good = false
	}
	switch {
	case n.Kind == yaml.AliasNode:
		refuse("has an alias; want no aliases: what routes share goes into defaults")
	case n.Anchor != "":
		refuse("has an anchor; want no anchors: what routes share goes into defaults")
	case n.Style&yaml.TaggedStyle != 0:
		refuse("has a tag; want no tags, and quotes around a text that begins with !")
	}
	for _, child := range n.Content {
		good = f.plain(child) && good
	}
	return good
}

// label shows a name that nobody checked, on one line; one that could be something else than a name is not shown.
func label(s string) string {
	switch {
	case strings.Contains(s, "://"):
		return redacted
	case regexp.MustCompile(`^[A-Za-z0-9_.:/{}[\]-]{1,128}$`).MatchString(s):
		return s
	}
	return quote(s)
}
