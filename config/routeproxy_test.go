package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/config"
)

// A proxy would resolve the names that deny_private is to judge; here it is the environment's, as net/http reads it.
func TestDenyPrivateBehindTheEnvironmentsProxy(t *testing.T) {
	address := strings.Replace(webRoute, "h.example", "8.8.8.8", 1)
	for i, c := range []struct {
		file        string
		environment map[string]string
		line        int // 0 = good
		key         string
	}{
		{webRoute + "  deny_private: true", map[string]string{"HTTPS_PROXY": "http://" + marker + "@proxy:3128"}, 4, "deny_private"},
		{webRoute + "  deny_private: true", map[string]string{"https_proxy": "proxy:3128"}, 4, "deny_private"},
		{"defaults: {deny_private: true}\n" + webRoute, map[string]string{"HTTPS_PROXY": "http://proxy:3128"}, 4, "url"},
		{webRoute + "  deny_private: true", map[string]string{"HTTP_PROXY": "http://proxy:3128"}, 0, ""},
		{webRoute + "  deny_private: true", map[string]string{"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".example"}, 0, ""},
		{webRoute + "  deny_private: false", map[string]string{"HTTPS_PROXY": "http://proxy:3128"}, 0, ""},
		{address + "  deny_private: true", map[string]string{"HTTPS_PROXY": "http://proxy:3128"}, 0, ""},
		{address + "  deny_private: true\n  method: POST", nil, 0, ""},
	} {
		_, err := config.ParseRoutes("routes.yaml", []byte(c.file), base(t), func(name string) (string, bool) {
			value, found := c.environment[name]
			return value, found
		})
		if c.line == 0 {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
			continue
		}
		want := fmt.Sprintf("routes.yaml:%d: routes[0].%s (queue a): has the environment's proxy between", c.line, c.key)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), marker) {
			t.Errorf("%d: got %v, want %s", i, err, want)
		}
	}
}
