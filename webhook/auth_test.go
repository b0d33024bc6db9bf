package webhook_test

import (
	"strings"
	"testing"

	"github.com/queuehook/queuehook/delivery"
	"github.com/queuehook/queuehook/signing"
	"github.com/queuehook/queuehook/task"
	"github.com/queuehook/queuehook/webhook"
)

func TestAuthorization(t *testing.T) {
	for name, c := range map[string]struct {
		user, auth string
		want       string
	}{
		"none":                    {"", "", "task's own"},
		"the route's":             {"", "Digest a=b", "Digest a=b"},
		"the URL's user":          {"Aladdin:open%20sesame@", "", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
		"a colon in its password": {"a:b%3Ac@", "", "Basic YTpiOmM="},
		"a user without password": {"a@", "", "Basic YTo="},
		"bytes beyond ASCII":      {"", "Token \u00e9", "Token \u00e9"},
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := record(t, always(204))
			tg := newTarget(t, webhook.Config{URL: strings.Replace(url, "://", "://"+c.user, 1), Authorization: c.auth})
			own := map[string]string{"authorization": "task's own"}
			wantReason(t, deliver(t, tg, newTask("", task.Meta{Headers: own})), delivery.OK)
			if got := (<-requests).header.Values("Authorization"); len(got) != 1 || got[0] != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCredentialsAreRefused(t *testing.T) {
	const good, user = "https://a.example/MARKER", "https://MARKER:MARKER@a.example"
	header := map[string]string{"authorization": "MARKER"}
	for name, c := range map[string]struct {
		cfg  webhook.Config
		want string
	}{
		"line break":          {webhook.Config{URL: good, Authorization: "MARKER\nMARKER"}, "authorization is not a header value"},
		"newline at its end":  {webhook.Config{URL: good, Authorization: "MARKER\n"}, "authorization is not a header value"},
		"space around":        {webhook.Config{URL: good, Authorization: " MARKER"}, "authorization is not a header value"},
		"and in the URL":      {webhook.Config{URL: user, Authorization: "MARKER"}, "beside the URL's user"},
		"and in a header":     {webhook.Config{URL: good, Authorization: "MARKER", Headers: header}, "beside the header Authorization"},
		"a header and a user": {webhook.Config{URL: user, Headers: header}, "beside the header Authorization"},
		"an empty secret":     {webhook.Config{URL: good, Secrets: make([]signing.Secret, 1)}, "secret is empty"},
	} {
		_, err := webhook.New(c.cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "MARKER") {
			t.Errorf("%s: got %v, want %q in it", name, err, c.want)
		}
	}
}
