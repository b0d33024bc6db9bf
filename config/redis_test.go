package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queuehook/queuehook/config"
)

func TestRedisURL(t *testing.T) {
	tests := []struct{ url, wrong string }{
		{"redis://h", ""},
		{"redis://h/", ""},
		{"redis://[::1]:6379/15?protocol=3", ""},
		{"rediss://user:p%40ss@h:6380/0", ""},
		{"redis://h:1?master_name=m&addr=h2:1", ""},
		{"unix:///run/redis.sock?db=1", ""},
		{"unix://user:" + marker + "@/run/redis.sock", ""},

		{"127.0.0.1:6379", "can't be parsed"},
		{"redis://user:" + marker + "^[@h", "can't be parsed"},
		{"redis://user:" + marker + "/x@h", "can't be parsed"},
		{"redis://u:" + marker + "%zz@h", "can't be parsed"},
		{"redis://h\n", "can't be parsed"},
		{marker, "none of the schemes"},
		{"localhost:6379", "none of the schemes"},
		{"http://h/" + marker, "none of the schemes"},
		{"redis://h#" + marker, "has a #"},
		{"redis://h?a;b=" + marker, "options that can't be parsed"},
		{"redis://", "has no host"},
		{"redis://:6379/0", "has no host"},
		{"redis:h", "has no host"},
		{"redis://h:", "has a bad port"},
		{"redis://h:65536", "has a bad port"},
		{"redis://h/" + marker, "not a database number"},
		{"redis://h/-1", "not a database number"},
		{"redis://h/1/2", "not a database number"},
		{"unix://run/redis.sock", "has a host before"},
		{"unix:///", "has no path"},
		{"unix:///s?master_name=m", "master_name with a socket"},
	}
	for _, tt := range tests {
		for name, value := range map[string]string{
			"DISPATCHER_REDIS_URL":      tt.url,
			"DISPATCHER_REDIS_URL_FILE": writeFile(t, tt.url),
		} {
			setenv(t, map[string]string{name: value})
			d, err := config.LoadDispatcher()
			all := problems(t, err)
			switch {
			case tt.wrong == "" && (err != nil || string(d.Redis.URL) != strings.TrimSuffix(tt.url, "\n")):
				t.Errorf("%s=%q: %v", name, tt.url, err)
			case tt.wrong == "":
			case tt.url == "redis://h\n" && name == "DISPATCHER_REDIS_URL_FILE": // the newline is the file's
			case len(all) != 1 || all[0].Name != name || !strings.Contains(all[0].Text, tt.wrong):
				t.Errorf("%s=%q: %v, want %q", name, tt.url, err, tt.wrong)
			case strings.Contains(err.Error(), marker):
				t.Errorf("%s=%q: shows the secret: %v", name, tt.url, err)
			}
		}
	}
}

func TestRedisURLThatSkipsTheCheckOfCertificates(t *testing.T) {
	for url, warns := range map[string]bool{
		"rediss://:" + marker + "@h?skip_verify=true":   true,
		"rediss://h?skip_verify=1":                      true,
		"rediss://h?master_name=m&skip_verify=true":     true,
		"rediss://h?skip_verify=false&skip_verify=true": true,
		"rediss://h?skip_verify=true&skip_verify=false": false,
		"rediss://h?skip_verify=false":                  false,
		"rediss://h?skip_verify":                        false,
		"rediss://h":                                    false,
		"redis://h?skip_verify=true":                    false, // there is nothing to skip
	} {
		for name, value := range map[string]string{"REDIS_URL": url, "REDIS_URL_FILE": writeFile(t, url)} {
			setenv(t, map[string]string{"DISPATCHER_" + name: value, "JANITOR_" + name: value})
			d, err := config.LoadDispatcher()
			j, errJ := config.LoadJanitor()
			if err != nil || errJ != nil {
				t.Fatal(err, errJ)
			}
			for prefix, warnings := range map[string][]string{"DISPATCHER_": d.Warnings, "JANITOR_": j.Warnings} {
				got := strings.Join(warnings, "\n")
				if strings.HasPrefix(got, prefix+name+": skip_verify in the URL: ") != warns || !warns && got != "" ||
					strings.Contains(got, marker) {
					t.Errorf("%s%s=%s: warnings %q", prefix, name, url, got)
				}
			}
		}
	}
}

func TestRedisCluster(t *testing.T) {
	tests := []struct{ url, routes, wrong string }{
		{"redis://h", "orders=http://x", ""},
		{"rediss://h/0", "{a}b=http://x", ""},
		{"redis://h", "a}b=http://x", "DISPATCHER_ROUTES"},
		{"redis://h/1", "", "DISPATCHER_REDIS_CLUSTER"},
		{"redis://h?master_name=m", "", "DISPATCHER_REDIS_CLUSTER"},
		{"unix:///s", "", "DISPATCHER_REDIS_CLUSTER"},
	}
	for _, tt := range tests {
		setenv(t, map[string]string{
			"DISPATCHER_REDIS_CLUSTER": "true", "DISPATCHER_REDIS_URL": tt.url, "DISPATCHER_ROUTES": tt.routes,
		})
		d, err := config.LoadDispatcher()
		all := problems(t, err)
		if tt.wrong == "" {
			if err != nil || !d.Redis.Cluster {
				t.Errorf("%+v: %v", tt, err)
			}
		} else if len(all) != 1 || all[0].Name != tt.wrong {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestSecretFiles(t *testing.T) {
	for content, want := range map[string]string{
		marker:               marker,
		marker + "\n":        marker,
		marker + "\r\n":      marker,
		marker + "\n\n":      marker + "\n",
		" " + marker + " \n": " " + marker + " ",
		"":                   "",
		"\n":                 "",
	} {
		for _, name := range []string{"DISPATCHER_REDIS_PASSWORD_FILE", "DISPATCHER_REDIS_SENTINEL_PASSWORD_FILE"} {
			setenv(t, map[string]string{name: writeFile(t, content), "DISPATCHER_REDIS_URL": "redis://h?master_name=m"})
			d, err := config.LoadDispatcher()
			if want == "" {
				if all := problems(t, err); len(all) != 1 || !strings.HasPrefix(all[0].Text, "names an empty file") {
					t.Errorf("%s with %q: %v", name, content, err)
				}
				continue
			}
			got := d.Redis.Password
			if strings.Contains(name, "SENTINEL") {
				got = d.Redis.SentinelPassword
			}
			if err != nil || string(got) != want {
				t.Errorf("%s with %q: %q, %v", name, content, string(got), err)
			}
		}
	}

	for path, wrong := range map[string]string{
		filepath.Join(t.TempDir(), marker):            "can't be read: no such file",
		t.TempDir():                                   "can't be read: is a directory",
		writeFile(t, strings.Repeat(marker, 100_000)): "can't be read: larger than",
		"/dev/zero":                                   "can't be read: larger than",
	} {
		setenv(t, map[string]string{"DISPATCHER_REDIS_PASSWORD_FILE": path})
		_, err := config.LoadDispatcher()
		all := problems(t, err)
		if len(all) != 1 || all[0].Name != "DISPATCHER_REDIS_PASSWORD_FILE" || !strings.HasPrefix(all[0].Text, wrong) {
			t.Errorf("%s: %v", path, err)
		} else if strings.Contains(err.Error(), marker) {
			t.Errorf("shows the path, which may be the secret: %v", err)
		}
	}

	for _, name := range []string{"REDIS_URL", "REDIS_PASSWORD", "REDIS_SENTINEL_PASSWORD"} {
		setenv(t, map[string]string{"JANITOR_" + name: marker, "JANITOR_" + name + "_FILE": writeFile(t, marker)})
		_, err := config.LoadJanitor()
		want := "JANITOR_" + name + ": is set together with JANITOR_" + name + "_FILE; want only one of the two"
		if err == nil || err.Error() != want {
			t.Errorf("both set: %v, want %s", err, want)
		}
	}
}

func TestSentinelPasswordWithoutSentinel(t *testing.T) {
	setenv(t, map[string]string{"DISPATCHER_REDIS_SENTINEL_PASSWORD": marker})
	d, err := config.LoadDispatcher()
	if err != nil || len(d.Warnings) != 1 || !strings.HasPrefix(d.Warnings[0], "DISPATCHER_REDIS_SENTINEL_PASSWORD: unused") {
		t.Errorf("%v, warnings %q", err, d.Warnings)
	}
}

func TestTLSFiles(t *testing.T) {
	cert, key := certificate(t)
	_, otherKey := certificate(t)
	const (
		ca, crt, k = "DISPATCHER_REDIS_CA_FILE", "DISPATCHER_REDIS_CERT_FILE", "DISPATCHER_REDIS_KEY_FILE"
		url        = "DISPATCHER_REDIS_URL"
	)
	missing := filepath.Join(t.TempDir(), marker)
	junk := writeFile(t, marker)
	tests := []struct {
		env  map[string]string
		want []string
	}{
		{map[string]string{url: "rediss://h", ca: cert, crt: cert, k: key}, nil},
		{map[string]string{url: "rediss://h", ca: cert}, nil},
		{map[string]string{url: "redis://h", ca: cert}, []string{ca}},
		{map[string]string{url: "redis://h", crt: cert, k: key}, []string{crt, k}},
		{map[string]string{url: "rediss://h", crt: cert}, []string{crt}},
		{map[string]string{url: "rediss://h", k: key}, []string{k}},
		{map[string]string{url: "rediss://h", crt: cert, k: otherKey}, []string{crt}},
		{map[string]string{url: "rediss://h", crt: junk, k: junk, ca: junk}, []string{ca, crt}},
		{map[string]string{url: "rediss://h", crt: missing, k: missing, ca: missing}, []string{ca, crt, k}},
	}
	for _, tt := range tests {
		setenv(t, tt.env)
		_, err := config.LoadDispatcher()
		if got := names(problems(t, err)); strings.Join(got, " ") != strings.Join(tt.want, " ") {
			t.Errorf("%v: %v, want problems with %v", tt.env, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), marker) {
			t.Errorf("shows a path or a file: %v", err)
		}
	}
}

// certificate writes a self-signed certificate and its key, and returns the two paths.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
}

func TestSecretsDoNotPrint(t *testing.T) {
	setenv(t, map[string]string{
		"DISPATCHER_REDIS_URL":               "redis://user:" + marker + "@h?master_name=m",
		"DISPATCHER_REDIS_PASSWORD":          marker,
		"DISPATCHER_REDIS_SENTINEL_PASSWORD": marker,
		"DISPATCHER_ROUTES":                  "orders=https://u:" + marker + "@h/" + marker + "?" + marker,
	})
	d, err := config.LoadDispatcher()
	if err != nil {
		t.Fatal(err)
	}
	d.Settings = nil // made to be shown: paths included
	asJSON, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{
		string(asJSON), fmt.Sprint(d), fmt.Sprintf("%+v", d), fmt.Sprintf("%#v", d.Redis), fmt.Sprintf("%q", d.Redis.Password),
		d.Redis.Redacted(), d.Routes[0].Target.String(),
	} {
		if strings.Contains(shown, marker) {
			t.Errorf("shows a secret: %s", shown)
		}
	}
	if got := d.Routes[0].Target.String(); got != "https://h" {
		t.Errorf("target prints as %q", got)
	}
}
