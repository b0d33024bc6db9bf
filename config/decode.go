package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The types of the environment's fields. Each is an envconfig Decoder that keeps the text, what it means and what is
// wrong with it, and never answers an error: envconfig would stop at the first and print the value. Decode is called
// with the variable's text, or with the default when it is not set, or not at all.

type text struct{ raw string }

func (f *text) Decode(raw string) error {
	f.raw = raw
	return nil
}

// secret is a text that must never be shown.
type secret struct{ raw string }

func (f *secret) Decode(raw string) error {
	f.raw = raw
	return nil
}

type integer struct {
	raw   string
	value int
	err   error
}

func (f *integer) Decode(raw string) error {
	f.raw = raw
	var err error
	switch f.value, err = strconv.Atoi(raw); {
	case errors.Is(err, strconv.ErrRange):
		f.err = errors.New("is out of range")
	case err != nil:
		f.err = errors.New("is not a decimal number")
	}
	return nil
}

type boolean struct {
	raw   string
	value bool
	err   error
}

func (f *boolean) Decode(raw string) error {
	f.raw = raw
	var err error
	if f.value, err = strconv.ParseBool(raw); err != nil {
		f.err = errors.New("is neither true nor false")
	}
	return nil
}

type list struct{ value []string }

func (f *list) Decode(raw string) error {
	f.value = entries(raw)
	return nil
}

type routes struct {
	value []Route
	errs  []error
}

func (f *routes) Decode(raw string) error {
	f.value, f.errs = parseRoutes(raw)
	return nil
}

// entries parts a text at spaces, newlines and commas.
func entries(raw string) []string {
	return strings.FieldsFunc(raw, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// repeated returns the entries that list has more than once, each once.
func repeated(list []string) []string {
	var twice []string
	for i, s := range list {
		if slices.Contains(list[:i], s) && !slices.Contains(twice, s) {
			twice = append(twice, s)
		}
	}
	return twice
}
