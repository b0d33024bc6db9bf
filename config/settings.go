package config

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// Setting is how one variable was understood, set or by default.
type Setting struct {
	Name  string // prefix included
	Value string // secrets redacted; empty = none
}

// Settings holds all variables in the order of the documentation's table.
type Settings []Setting

// Print writes one NAME=value line for each variable, a value with control characters in Go's quotes. The error is
// the writer's.
func (s Settings) Print(w io.Writer) error {
	for _, e := range s {
		value := e.Value
		if strings.ContainsFunc(value, unicode.IsControl) {
			value = strconv.Quote(value)
		}
		if _, err := fmt.Fprintf(w, "%s=%s\n", e.Name, value); err != nil {
			return fmt.Errorf("print settings: %w", err)
		}
	}
	return nil
}

// Print writes all settings as Settings.Print does, then the routes as YAML, all without secrets. The error is the
// writer's.
func (d Dispatcher) Print(w io.Writer) error {
	if err := d.Settings.Print(w); err != nil {
		return err
	}
	views := make([]RouteView, len(d.Routes))
	for i, r := range d.Routes {
		views[i] = r.Redacted()
	}
	content, err := yaml.Dump(map[string][]RouteView{"routes": views})
	if err != nil {
		return fmt.Errorf("print routes: %w", err)
	}
	if _, err := fmt.Fprintf(w, "\n%s", content); err != nil {
		return fmt.Errorf("print routes: %w", err)
	}
	return nil
}
