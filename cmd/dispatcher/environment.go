package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/config"
)

// width is that of the narrowest usual terminal.
const width = 80

// newEnvironment is a help topic.
func newEnvironment(std stdio) *cobra.Command {
	topic := &cobra.Command{Use: "environment", Short: "The environment variables that configure dispatcher"}
	topic.SetHelpFunc(func(*cobra.Command, []string) { printVariables(std.out, config.DispatcherVariables()) })
	return topic
}

func printVariables(w io.Writer, variables []config.Variable) {
	for _, v := range variables {
		doc := v.Doc
		if v.Default != "" {
			doc += " (default " + v.Default + ")"
		}
		fmt.Fprintln(w, v.Name)
		for _, line := range wrap(doc, width-4) {
			fmt.Fprintln(w, "    "+line)
		}
	}
}

// wrap breaks a text between words into lines of at most that many bytes; a longer word has a line of its own.
func wrap(text string, most int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= most:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
