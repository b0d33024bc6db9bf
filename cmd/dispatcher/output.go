package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/queuehook/queuehook/task"
)

// instant is a time as it is shown, in UTC.
func instant(t time.Time) string { return t.UTC().Format(task.TimeFormat) }

// printJSON writes v as one line, in which names read as they are.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// table lines columns up. Cells that strangers wrote go through clean.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, head ...any) table {
	const gap = 2
	t := table{tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)}
	t.row(head...)
	return t
}

func (t table) row(cells ...any) {
	line := strings.TrimSuffix(strings.Repeat("%v\t", len(cells)), "\t") + "\n"
	fmt.Fprintf(t.w, line, cells...)
}

func (t table) print() error {
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// clean makes a text harmless to a terminal or a table: it comes from Redis, where anybody may have put it.
func clean(s string) string {
	if s == "" {
		return "-"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

// cleanList is clean for several.
func cleanList(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = clean(text)
	}
	return strings.Join(all, ", ")
}

// orDash is a number, 0 being none.
func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
