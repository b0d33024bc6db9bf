package faultproxy

import (
	"strings"
	"testing"
)

func TestMatcher(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		needle string
		chunks []string
		want   int // index of the chunk that matches, -1 = none
	}{
		"whole":                       {"EVALSHA", []string{"*1 PING", "*3 EVALSHA x"}, 1},
		"split in two":                {"EVALSHA", []string{"*3 EVA", "LSHA x"}, 1},
		"split in bytes":              {"EVAL", strings.Split("xEVALx", ""), 4},
		"absent":                      {"EVALSHA", []string{"EVALSH", "xA"}, -1},
		"empty matches all":           {"", []string{"PING"}, 0},
		"split after a long chunk":    {"EVAL", []string{strings.Repeat("x", 40<<10) + "EV", "AL"}, 1},
		"at the start of a big chunk": {"EVAL", []string{"EVAL" + strings.Repeat("x", 40<<10)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m matcher
			l := &Loss{needle: []byte(tc.needle), pending: 1, wanted: 1}
			got := -1
			for i, c := range tc.chunks {
				if m.find([]byte(c), []*Loss{l}) != nil {
					got = i
				}
			}
			if got != tc.want {
				t.Errorf("matched chunk %d, want %d", got, tc.want)
			}
		})
	}
}

func TestMatcherForgetsEarlierRequests(t *testing.T) {
	t.Parallel()
	var m matcher
	m.find([]byte("EVALSHA"), nil) // passed before anyone asked
	l := &Loss{needle: []byte("EVALSHA"), pending: 1, wanted: 1}
	if m.find([]byte("PING"), []*Loss{l}) != nil {
		t.Error("a request from before the fault was matched")
	}
	var other matcher
	if other.find([]byte("EVALSHA"), []*Loss{l}) == nil {
		t.Error("the next one was not")
	}
	var third matcher
	if third.find([]byte("EVALSHA"), []*Loss{l}) != nil {
		t.Error("one more than asked for was matched")
	}
}
