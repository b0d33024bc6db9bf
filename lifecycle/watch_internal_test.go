package lifecycle

import (
	"testing"
	"time"
)

func TestSighting(t *testing.T) {
	start := time.Now()
	type look struct {
		at    int // seconds after the first
		head  head
		known string // what the script is told before
		want  int    // seconds
	}
	a, b := head{gone: 5, length: 3, digest: "a"}, head{gone: 5, length: 3, digest: "b"}
	longer := head{gone: 5, length: 4, digest: "a"}
	moved, standing := head{gone: 6, length: -1}, head{gone: 6, length: 3, digest: "a"}
	empty := head{gone: 5, length: -1}
	large, there := head{gone: 5, length: 600_000, digest: "a"}, head{gone: 5, length: unseen}
	for name, looks := range map[string][]look{
		"the same":       {{0, a, "", 0}, {5, a, "5", 5}, {10, a, "5", 10}},
		"another":        {{0, a, "", 0}, {5, b, "5", 0}, {10, b, "5", 5}},
		"another length": {{0, a, "", 0}, {5, longer, "5", 0}},
		"an equal one":   {{0, a, "", 0}, {5, moved, "5", 0}, {10, standing, "6", 0}, {15, standing, "6", 5}},
		"busy":           {{0, a, "", 0}, {5, moved, "5", 0}, {10, head{gone: 7, length: -1}, "6", 0}},
		"empty":          {{0, empty, "", 0}, {5, empty, "5", 0}, {10, a, "5", 0}, {15, a, "5", 5}, {20, empty, "5", 0}},
		"a new queue":    {{0, head{length: -1}, "", 0}, {5, head{length: -1}, "0", 0}},
		"large":          {{0, large, "", 0}, {5, there, "5", 5}, {10, there, "5", 10}, {15, large, "5", 15}, {20, there, "5", 20}},
		"large and gone": {{0, large, "", 0}, {5, there, "5", 5}, {15, a, "5", 0}, {20, a, "5", 5}},
		"empty payload":  {{0, head{}, "", 0}, {5, head{}, "0", 5}},
	} {
		t.Run(name, func(t *testing.T) {
			var s sighting
			for _, l := range looks {
				now := start.Add(time.Duration(l.at) * time.Second)
				known, looks := s.ask(now)
				if known != l.known || looks != (l.head.length != unseen) {
					t.Errorf("at %d s: known %q, looks = %v; want %q", l.at, known, looks, l.known)
				}
				got := s.update(l.head, now)
				if want := time.Duration(l.want) * time.Second; got != want {
					t.Errorf("at %d s: %v, want %v", l.at, got, want)
				}
			}
		})
	}
}
