package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/delivery"
)

// TestTable pins the whole table: a label is a wire format, and a row is a promise.
func TestTable(t *testing.T) {
	want := []struct {
		reason     delivery.Reason
		label      string
		settlement delivery.Settlement
		marks      string // charged, unknown, fault
	}{
		{delivery.OK, "ok", delivery.Complete, ""},
		{delivery.Redirect, "redirect", delivery.Abandon, "cf"},
		{delivery.Rejected, "rejected", delivery.Bury, "c"},
		{delivery.Target, "target", delivery.Abandon, "cf"},
		{delivery.Throttled, "throttled", delivery.Abandon, ""},
		{delivery.Status, "status", delivery.Abandon, "c"},
		{delivery.Connect, "connect", delivery.Abandon, "cf"},
		{delivery.DNS, "dns", delivery.Abandon, "cf"},
		{delivery.TLS, "tls", delivery.Abandon, "cf"},
		{delivery.Reset, "reset", delivery.Abandon, "cu"},
		{delivery.StaleConnection, "stale_connection", delivery.Abandon, "u"},
		{delivery.Timeout, "timeout", delivery.Abandon, "cuf"},
		{delivery.Shutdown, "shutdown", delivery.Release, "u"},
		{delivery.Unsendable, "unsendable", delivery.Bury, ""},
		{delivery.Exhausted, "exhausted", delivery.Bury, ""},
		{delivery.Expired, "expired", delivery.Bury, ""},
		{delivery.Crashed, "crashed", delivery.Bury, ""},
		{delivery.BodyMissing, "body_missing", delivery.Bury, ""},
		{delivery.FunctionError, "function_error", delivery.Abandon, "c"},
		{delivery.Failed, "failed", delivery.Abandon, "c"},
	}
	reasons := delivery.Reasons()
	if len(reasons) != len(want) {
		t.Fatalf("Reasons() has %d, the table of this test %d", len(reasons), len(want))
	}
	for i, w := range want {
		if reasons[i] != w.reason || w.reason.String() != w.label {
			t.Errorf("reason %d is %v, want %s", i, reasons[i], w.label)
		}
		wantOutcome := delivery.Outcome{
			Reason: w.reason, Settlement: w.settlement, Charged: strings.Contains(w.marks, "c"),
			Unknown: strings.Contains(w.marks, "u"), TargetFault: strings.Contains(w.marks, "f"),
		}
		if diff := cmp.Diff(wantOutcome, delivery.Of(w.reason)); diff != "" {
			t.Errorf("Of(%v) (-want +got):\n%s", w.reason, diff)
		}
		parsed, err := delivery.ParseReason(w.label)
		if err != nil || parsed != w.reason {
			t.Errorf("ParseReason(%q) = %v, %v", w.label, parsed, err)
		}
	}
}

// TestEveryConstantHasARow reads the source, so that it sees a Reason without a row wherever it is declared.
func TestEveryConstantHasARow(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "delivery.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		if first, ok := group.Specs[0].(*ast.ValueSpec); !ok || first.Names[0].Name != "OK" {
			continue
		}
		for _, spec := range group.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
		}
	}
	if len(names) != len(delivery.Reasons()) {
		t.Errorf("%d constants, %d reasons", len(names), len(delivery.Reasons()))
	}
	labels := map[string]bool{}
	for i, r := range delivery.Reasons() {
		label, outcome := r.String(), delivery.Of(r)
		if strings.Contains(label, "(") || labels[label] || outcome.Reason != r || outcome.Settlement == 0 {
			t.Errorf("constant %s: label %q, outcome %+v", names[i], label, outcome)
		}
		labels[label] = true
	}
}

func TestNoneOfTheSet(t *testing.T) {
	for _, r := range []delivery.Reason{-1, 0, 1000} {
		if got := delivery.Of(r).Reason; got != delivery.Failed {
			t.Errorf("Of(%d) is %v", int(r), got)
		}
		if _, err := delivery.ParseReason(r.String()); err == nil {
			t.Errorf("ParseReason(%q) succeeded", r)
		}
	}
	if _, err := delivery.ParseReason(""); err == nil {
		t.Error(`ParseReason("") succeeded`)
	}
}

func TestSettlementLabels(t *testing.T) {
	got := fmt.Sprint(delivery.Complete, delivery.Abandon, delivery.Bury, delivery.Release, delivery.Settlement(0))
	if want := "completed abandoned buried released settlement(0)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFromError(t *testing.T) {
	own := delivery.Of(delivery.Throttled)
	own.Status = 429
	var none *delivery.Error
	detailed := func(r delivery.Reason, detail string) delivery.Outcome {
		o := delivery.Of(r)
		o.Detail = detail
		return o
	}
	for name, c := range map[string]struct {
		err  error
		want delivery.Outcome
	}{
		"nil":             {nil, delivery.Of(delivery.OK)},
		"own":             {&delivery.Error{Outcome: own}, own},
		"wrapped":         {fmt.Errorf("a: %w", fmt.Errorf("b: %w", &delivery.Error{Outcome: own})), own},
		"joined":          {errors.Join(errors.New("x"), &delivery.Error{Outcome: own}), own},
		"typed nil":       {none, delivery.Of(delivery.Failed)},
		"deadline":        {fmt.Errorf("call: %w", context.DeadlineExceeded), detailed(delivery.Timeout, "call: context deadline exceeded")},
		"shutdown":        {fmt.Errorf("call: %w", delivery.ErrShutdown), delivery.Of(delivery.Shutdown)},
		"own before that": {fmt.Errorf("%w: %w", context.DeadlineExceeded, &delivery.Error{Outcome: own}), own},
		"other":           {errors.New("no stock"), detailed(delivery.Failed, "no stock")},
		"cancelled":       {context.Canceled, detailed(delivery.Failed, "context canceled")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, delivery.FromError(c.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDetailIsBoundedUTF8(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 400), "a" + strings.Repeat("é", 400), strings.Repeat("\xff", 600), "\xff"} {
		for _, o := range []delivery.Outcome{
			delivery.FromError(errors.New(text)),
			delivery.Errorf(delivery.Unsendable, "%s", text).Outcome,
		} {
			if !utf8.ValidString(o.Detail) || len(o.Detail) > 512 || o.Detail == "" {
				t.Errorf("detail of %d bytes: %q", len(o.Detail), o.Detail)
			}
		}
	}
}

func TestErrorText(t *testing.T) {
	status := delivery.Of(delivery.Status)
	status.Status = 500
	redirect := delivery.Of(delivery.Redirect)
	redirect.Status, redirect.Detail = 307, "to https://b.example"
	for want, err := range map[string]error{
		"status 500":                         &delivery.Error{Outcome: status},
		"redirect 307: to https://b.example": &delivery.Error{Outcome: redirect},
		"dns: no such host":                  delivery.Errorf(delivery.DNS, "no such %s", "host"),
		"timeout":                            delivery.Errorf(delivery.Timeout, ""),
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
