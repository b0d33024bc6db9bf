package e2e_test

import (
	"net"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/internal/fleet"
)

func TestBadSettings(t *testing.T) {
	t.Parallel()
	const routes = "DISPATCHER_ROUTES=orders=http://127.0.0.1:1/"
	for name, test := range map[string]struct {
		env  []string
		want []string // on standard error; nothing = accepted
	}{
		"number without unit": {[]string{"DISPATCHER_TIMEOUT=20"}, []string{"DISPATCHER_TIMEOUT", `"20"`, "20s"}},
		"duration":            {[]string{"DISPATCHER_TIMEOUT=20s"}, nil},
		"no duration":         {[]string{"DISPATCHER_TIMEOUT=abc"}, []string{"DISPATCHER_TIMEOUT", `"abc"`, "duration"}},
		"negative":            {[]string{"DISPATCHER_TIMEOUT=-1"}, []string{"DISPATCHER_TIMEOUT", `"-1"`, "duration"}},
		"empty":               {[]string{"DISPATCHER_TIMEOUT="}, []string{"DISPATCHER_TIMEOUT", "empty"}},
		"misspelt":            {[]string{"DISPATCHER_TIMEOT=20s"}, []string{"DISPATCHER_TIMEOT", "DISPATCHER_TIMEOUT?"}},
		"two at once": {
			[]string{"DISPATCHER_TIMEOUT=abc", "DISPATCHER_CONCURRENCY=0"},
			[]string{"DISPATCHER_TIMEOUT", "DISPATCHER_CONCURRENCY", `"0"`, "1 to"},
		},
		"secret":   {[]string{"DISPATCHER_REDIS_URL=http://u:hunter2@127.0.0.1/"}, []string{"DISPATCHER_REDIS_URL"}},
		"no route": {[]string{"DISPATCHER_ROUTES="}, []string{"DISPATCHER_ROUTES"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{routes}, test.env...)
			args := []string{"--print-config"}
			if name == "no route" { // which the printing of the settings is not about
				args = nil
			}
			code, stdout, stderr := fleet.Run(t, fleet.Dispatcher, args, env)
			if len(test.want) == 0 {
				if code != 0 || !strings.Contains(stdout, "DISPATCHER_TIMEOUT") {
					t.Errorf("exit code %d, want 0\n%s%s", code, stdout, stderr)
				}
				return
			}
			if code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("no %s in: %s", want, stderr)
				}
			}
			if strings.Contains(stdout+stderr, "hunter2") {
				t.Errorf("a password is shown: %s%s", stdout, stderr)
			}
		})
	}
}

func TestAdminAddressInUse(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	code, _, stderr := fleet.Run(t, fleet.Dispatcher, nil, []string{
		"DISPATCHER_ROUTES=orders=http://127.0.0.1:1/", "DISPATCHER_ADMIN_ADDR=" + ln.Addr().String(),
		"DISPATCHER_REDIS_URL=redis://" + closedPort(t),
	})
	if code != 1 || !strings.Contains(stderr, "DISPATCHER_ADMIN_ADDR") {
		t.Errorf("exit code %d, want 1 and DISPATCHER_ADMIN_ADDR named: %s", code, stderr)
	}
}
