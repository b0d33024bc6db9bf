package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const marker = "Hunter2MARKER"

func TestParseRoutes(t *testing.T) {
	tests := []struct{ raw, want string }{
		{"", ""},
		{" ,\n,\t ", ""},
		{"orders=https://a.example/hook", "orders=https://a.example/hook"},
		{"a=http://x,b=http://y\n\tc=http://z  d=http://z", "a=http://x b=http://y c=http://z d=http://z"},
		{"a=http://x/%2Cb%2Fc%C3%A9", "a=http://x/%2Cb%2Fc%C3%A9"},
		{"a=HTTPS://x/y?b=c=d%2Ce", "a=https://x/y?b=c=d%2Ce"},
		{"a=http://u:p@[::1]:8080/", "a=http://u:p@[::1]:8080/"},
		{"tenant:{1}/é=http://x", "tenant:{1}/é=http://x"},
		{"a=lambda:thumbs", "a=lambda:thumbs"},
		{"a=lambda:thumbs:live", "a=lambda:thumbs:live"},
		{"a=lambda:thumbs:$LATEST", "a=lambda:thumbs:$LATEST"},
		{
			"a=lambda:arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:f_1",
			"a=lambda:arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:f_1",
		},
		{
			"a=lambda:arn:aws:lambda:eu-west-1:123456789012:function:f:7",
			"a=lambda:arn:aws:lambda:eu-west-1:123456789012:function:f:7",
		},
	}
	for _, tt := range tests {
		got, errs := parseRoutes(tt.raw)
		if len(errs) > 0 {
			t.Errorf("%q: %v", tt.raw, errs)
			continue
		}
		if d := cmp.Diff(tt.want, join(got)); d != "" {
			t.Errorf("%q (-want +got)\n%s", tt.raw, d)
		}
	}
}

// join writes routes as they are read.
func join(all []Route) string {
	entries := make([]string, len(all))
	for i, r := range all {
		target := r.Target.String()
		if r.Target.URL != nil {
			target = r.Target.URL.String()
		}
		entries[i] = r.Queue + "=" + target
	}
	return strings.Join(entries, " ")
}

func TestParseRoutesLambdaParts(t *testing.T) {
	got, errs := parseRoutes("a=lambda:arn:aws:lambda:eu-west-1:123456789012:function:f:7")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := Lambda{Function: "arn:aws:lambda:eu-west-1:123456789012:function:f", Qualifier: "7", Region: "eu-west-1"}
	if d := cmp.Diff(want, got[0].Target.Lambda); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestParseRoutesRefuses(t *testing.T) {
	tests := []struct{ raw, want string }{
		{"orders", "entry 1 has no ="},
		{"a=http://x " + marker, "entry 2 has no ="},
		{"=http://x", "entry 1 has no queue before the ="},
		{"http://u:" + marker + "@x", "entry 1 has no queue before the target"},
		{"http://x/?token=" + marker, "entry 1 has no queue before the target"},
		{"ws://" + marker + "/?a=http://x", "entry 1 has no queue before the target"},
		{"lambda:f", "entry 1 has no queue before the target"},
		{"a=", "entry 1 has no target of a known kind after its first ="},
		{"a=" + marker, "entry 1 has no target of a known kind after its first ="},
		{marker + "=x", "entry 1 has no target of a known kind after its first ="},
		{"a=ftp://" + marker, "entry 1 has no target of a known kind after its first ="},
		{"a=//x", "entry 1 has no target of a known kind after its first ="},
		{"a=http:x", "entry 1 has no target of a known kind after its first ="},
		{"a==http://x", "entry 1 has no target of a known kind after its first ="},
		{"a=arn:aws:lambda:eu-west-1:123456789012:function:f", "entry 1 has no target of a known kind after its first ="},
		{"a=http://", `entry 1 (queue "a") has a URL without a host`},
		{"a=http://:80", `entry 1 (queue "a") has a URL without a host`},
		{"a=http:///" + marker, `entry 1 (queue "a") has a URL without a host`},
		{"a=http://u:" + marker + "@", `entry 1 (queue "a") has a URL without a host`},
		{"a=http://x:", `entry 1 (queue "a") has a URL with a bad port`},
		{"a=http://x:65536", `entry 1 (queue "a") has a URL with a bad port`},
		{"a=http://x:" + marker, `entry 1 (queue "a") has a bad URL`},
		{"a=http://u:" + marker + "/@x", `entry 1 (queue "a") has a bad URL`},
		{"a=http://u:" + marker + "%zz@x", `entry 1 (queue "a") has a bad URL`},
		{"a=http://[::1", `entry 1 (queue "a") has a bad URL`},
		{"a=http://x#" + marker, `entry 1 (queue "a") has a URL with a fragment, which is never sent (a # in a password is written %23)`},
		{"a=http://x#", `entry 1 (queue "a") has a URL with a fragment, which is never sent (a # in a password is written %23)`},
		{"a=http://x/%2Cé", `entry 1 (queue "a") has a URL with characters in its path that must be percent-encoded`},
		{"a=lambda:", `entry 1 (queue "a") has a bad Lambda function name, qualifier or ARN`},
		{"a=lambda:f:", `entry 1 (queue "a") has a bad Lambda function name, qualifier or ARN`},
		{"a=lambda:f:1:2", `entry 1 (queue "a") has a bad Lambda function name, qualifier or ARN`},
		{"a=lambda:" + marker + "/f", `entry 1 (queue "a") has a bad Lambda function name, qualifier or ARN`},
		{"a=lambda:" + strings.Repeat("f", 65), `entry 1 (queue "a") has a bad Lambda function name, qualifier or ARN`},
		{"a=lambda:arn:aws:lambda:eu-west-1:12:function:f", `entry 1 (queue "a") has a bad Lambda function name, qualifier or ARN`},
		{"a=LAMBDA:f", `entry 1 (queue "a") has a target of an unknown kind`},
		{"a=http://x a=http://y a=http://z", `gives queue "a" more than one target`},
		{"a=http://x,a=http://x", `gives queue "a" more than one target`},
		{"b a=http://x a=http://y c=http://", `entry 1 has no =; entry 4 (queue "c") has a URL without a host; gives queue "a" more than one target`},
	}
	for _, tt := range tests {
		_, errs := parseRoutes(tt.raw)
		texts := make([]string, len(errs))
		for i, err := range errs {
			texts[i] = err.Error()
		}
		if got := strings.Join(texts, "; "); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.raw, got, tt.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"abc", "abc", 0},
		{"abc", "acb", 1},
		{"TIMEUOT", "TIMEOUT", 1},
		{"URI", "URL", 1},
		{"kitten", "sitting", 3},
		{"CAPS", "CAP", 1},
	} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// FuzzParseRoutes: a password in a URL shows neither in errors nor elsewhere, whatever follows it; accepted routes are
// complete, and read the same when written out again.
func FuzzParseRoutes(f *testing.F) {
	for _, seed := range []string{
		"h/hook", "h/?a=b b=lambda:f:1", "h,b=http://y", "h a=http://x", ",=", "h#f", "h:99999", " =x", "\x00", "h\nb=c",
		"h/?x=" + "http://y", "[::1]:1 {a}=https://é", "h/%2C%zz", "/?x@h", "?@h b", "h b=lambda:arn:aws:lambda:eu-west-1:123456789012:function:f",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		if strings.Contains(strings.ToLower(rest), "marker") {
			t.Skip("can repeat the password elsewhere")
		}
		all, errs := parseRoutes("a=https://user:" + marker + "@" + rest)
		for _, err := range errs {
			if strings.Contains(err.Error(), marker) {
				t.Errorf("error shows the password: %v", err)
			}
		}
		seen := make(map[string]bool)
		for _, r := range all {
			if shown := r.Target.String() + r.Target.Redacted(); strings.Contains(shown, marker) {
				t.Errorf("shows the password: %s", shown)
			}
			if r.Queue == "" || (r.Target.URL == nil) == (r.Target.Lambda.Function == "") {
				t.Errorf("incomplete: %q", r.Queue)
			}
			if u := r.Target.URL; u != nil && (u.Host == "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https") {
				t.Errorf("bad URL accepted: %s", u)
			}
			if seen[r.Queue] && len(errs) == 0 {
				t.Errorf("queue %q twice", r.Queue)
			}
			seen[r.Queue] = true
		}
		if len(errs) > 0 {
			return
		}
		again, errs := parseRoutes(join(all))
		if len(errs) > 0 || join(again) != join(all) {
			t.Errorf("reads differently when written again: %q, %v", join(all), errs)
		}
	})
}
