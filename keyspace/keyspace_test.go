package keyspace_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/keyspace"
)

// The golden strings are a wire format: a change here is a breaking change.
func TestKeysAreGolden(t *testing.T) {
	tests := []struct {
		queue, prefix string
		clusterable   bool
	}{
		{"orders", "{orders}", true},
		{"a.b:c/d", "{a.b:c/d}", true},
		{"öffentlich", "{öffentlich}", true},
		{"a{b", "{a{b}", true},
		{"{shop}:orders", "{shop}:orders:qh", true},
		{"orders{shop}x", "orders{shop}x:qh", true},
		{"a}{b}", "a}{b}:qh", true},
		{"{orders}", "{orders}:qh", true},
		{"{}a", "{}a:qh", false},
		{"a}b", "a}b:qh", false},
		{"}a{", "}a{:qh", false},
		{"{}{a}", "{}{a}:qh", false},
	}
	for _, tt := range tests {
		t.Run(tt.queue, func(t *testing.T) {
			k, err := keyspace.New(tt.queue)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{
				k.Source, k.Landing, k.Body, k.Meta, k.Crashes, k.Delayed, k.Dead, k.Ticks, k.Info, k.Suspects,
				k.Holder, k.Stats, k.Paused, k.Rate, k.Worker("w1"), k.Dedup("d1"), k.Hook("h1"),
			}
			want := []string{tt.queue}
			for _, suffix := range []string{
				"in", "body", "meta", "crashes", "delayed", "dead", "ticks", "info", "suspects", "holder", "stats",
				"paused", "rate", "worker_w1", "dedup_d1", "hook_h1",
			} {
				want = append(want, tt.prefix+":"+suffix)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if k.Clusterable() != tt.clusterable {
				t.Errorf("Clusterable() = %v, want %v", k.Clusterable(), tt.clusterable)
			}
		})
	}
	if keyspace.Queues != "queuehook:queues" {
		t.Error("the set of all queues was renamed")
	}
}

func TestNewRefusesNamesThatCannotWork(t *testing.T) {
	for _, queue := range []string{
		"", "two words", "tab\there", "line\nbreak", "nul\x00", "\xff", "no\u200bwidth", strings.Repeat("x", 201),
		"queuehook:queues", "{orders}:in", "{orders}:worker_", "orders}x:qh:dead", "{shop}:orders:qh:hook_x", "x{y}:rate",
	} {
		if _, err := keyspace.New(queue); !errors.Is(err, keyspace.ErrName) {
			t.Errorf("New(%q) = %v, want ErrName", queue, err)
		}
	}
	for _, queue := range []string{"in", "orders:in", "orders:worker_a", "orders:ticks", strings.Repeat("x", 200)} {
		if _, err := keyspace.New(queue); err != nil {
			t.Errorf("New(%q) = %v", queue, err)
		}
	}
}

func TestPatternsAreEscaped(t *testing.T) {
	k, err := keyspace.New("a*b[c]?")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := k.Workers(), `{a\*b\[c\]\?}:worker_*`; got != want {
		t.Errorf("Workers() = %s, want %s", got, want)
	}
	if got, want := k.All(), `{a\*b\[c\]\?}:*`; got != want {
		t.Errorf("All() = %s, want %s", got, want)
	}
}
