package config

import (
	"bytes"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// Variable describes one variable of the environment.
type Variable struct {
	Name    string // prefix included
	Default string // empty = none
	Doc     string // one line
}

// DispatcherVariables lists what LoadDispatcher understands, in the order of the documentation's table.
func DispatcherVariables() []Variable { return variables(dispatcherPrefix, &dispatcherEnv{}) }

// JanitorVariables lists what LoadJanitor understands, in the order of the documentation's table.
func JanitorVariables() []Variable { return variables(janitorPrefix, &janitorEnv{}) }

// variables has envconfig itself spell the names, so that the table, the typo guard and what is read cannot differ.
// env is one of the structs of env.go: only a mistake there can make it panic.
func variables(prefix string, env any) []Variable {
	var out bytes.Buffer
	const format = "{{range .}}{{usage_key .}}\t{{usage_default .}}\t{{usage_description .}}\n{{end}}"
	if err := envconfig.Usagef(prefix, env, &out, format); err != nil {
		panic(err)
	}
	var all []Variable
	for line := range strings.Lines(out.String()) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		def, doc, _ := strings.Cut(rest, "\t")
		all = append(all, Variable{Name: name, Default: def, Doc: doc})
	}
	return all
}
