package config

import (
	"cmp"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with the environment or with the routes file.
type Problem struct {
	Name string // the variable, prefix included, or the file's name and the line: routes.yaml:12
	Text string // what is wrong and what is accepted; never a part of a secret

	variable string // whose place in the table is the problem's, where that is not Name
}

// Error is everything that is wrong with the environment, or with the routes file, in the order of the table of variables, unknown names last.
type Error struct {
	Problems []Problem
}

// Error has one line for each problem, without a newline at the end.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Name + ": " + p.Text
	}
	return strings.Join(lines, "\n")
}

// forgive drops what is wrong with the content of the file that a variable names.
func (c *checker) forgive(short string) {
	c.problems = slices.DeleteFunc(c.problems, func(p Problem) bool { return p.variable == c.name(short) })
}

// err returns the *Error of what was gathered, or nil.
func (c *checker) err() error {
	if len(c.problems) == 0 {
		return nil
	}
	rank := func(p Problem) int {
		if i := slices.Index(c.names, cmp.Or(p.variable, p.Name)); i >= 0 {
			return i
		}
		return len(c.names)
	}
	sorted := slices.Clone(c.problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		if rank(a) == len(c.names) {
			return strings.Compare(a.Name, b.Name)
		}
		return 0
	})
	return &Error{Problems: sorted}
}
