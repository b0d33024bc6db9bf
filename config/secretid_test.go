package config_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/config"
)

const secretARN = "arn:aws-cn:secretsmanager:cn-north-1:123456789012:secret:team/redis-AbCdEf"

func TestSecretARN(t *testing.T) {
	plain := config.SecretID{ARN: secretARN, Region: "cn-north-1"}
	part := plain
	part.Key = "password"
	for suffix, want := range map[string]config.SecretID{
		"":               plain,
		":::":            plain,
		":password::":    part,
		"::AWSPREVIOUS:": {ARN: plain.ARN, Region: plain.Region, Stage: "AWSPREVIOUS"},
		":a:b:c":         {ARN: plain.ARN, Region: plain.Region, Key: "a", Stage: "b", Version: "c"},
	} {
		setenv(t, map[string]string{"JANITOR_REDIS_PASSWORD_SECRET_ARN": secretARN + suffix})
		got, err := config.LoadJanitor()
		if err != nil {
			t.Errorf("%q: %v", suffix, err)
		}
		if d := cmp.Diff(want, got.RedisPasswordSecret); d != "" {
			t.Errorf("%q (-want +got)\n%s", suffix, d)
		}
		var shown bytes.Buffer
		if err := got.Settings.Print(&shown); err != nil || !strings.Contains(shown.String(), secretARN+suffix) {
			t.Errorf("%q is not shown: %v", suffix, err)
		}
	}
}

func TestBadSecretARN(t *testing.T) {
	for _, bad := range []string{
		"", "hunter2", "redis-AbCdEf", secretARN + ":password", secretARN + ":password:", secretARN + ":a:b:c:d",
		strings.Replace(secretARN, "secretsmanager", "ssm", 1), strings.Replace(secretARN, "cn-north-1", "", 1),
		strings.Replace(secretARN, "team", "the team", 1), "arn:aws:secretsmanager:eu-west-1:123456789012:hunter2:redis",
	} {
		setenv(t, map[string]string{"JANITOR_REDIS_PASSWORD_SECRET_ARN": bad})
		_, err := config.LoadJanitor()
		all := problems(t, err)
		if len(all) != 1 || all[0].Name != "JANITOR_REDIS_PASSWORD_SECRET_ARN" || !strings.Contains(all[0].Text, "arn:aws:secretsmanager:") {
			t.Errorf("%q: %v", bad, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the text is shown: %v", err)
		}
	}
	for _, other := range []string{"JANITOR_REDIS_PASSWORD", "JANITOR_REDIS_PASSWORD_FILE"} {
		setenv(t, map[string]string{"JANITOR_REDIS_PASSWORD_SECRET_ARN": secretARN, other: writeFile(t, "hunter2")})
		if _, err := config.LoadJanitor(); len(problems(t, err)) != 1 || !strings.Contains(err.Error(), other) {
			t.Errorf("together with %s: %v", other, err)
		}
	}
	setenv(t, map[string]string{"DISPATCHER_REDIS_PASSWORD_SECRET_ARN": secretARN})
	if _, err := config.LoadDispatcher(); len(problems(t, err)) != 1 {
		t.Errorf("a dispatcher: %v, want it unknown", err)
	}
}
