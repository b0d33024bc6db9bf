package deploy

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/queuehook/queuehook/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// render does what `helm template` does with the values of a YAML text, the notes included.
func render(values string) (map[string]string, error) { return renderAs("shop", values) }

// renderAs is render for a release of that name.
func renderAs(release, values string) (map[string]string, error) {
	chart, err := loader.Load(root + "/charts/queuehook")
	if err != nil {
		return nil, err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{
		Name: release, Namespace: "hooks", Revision: 1, IsInstall: true,
	}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	engine := engine.Engine{Strict: true}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	rendered := map[string]string{}
	for name, text := range files {
		if strings.TrimSpace(text) != "" {
			rendered[filepath.Base(name)] = text
		}
	}
	return rendered, nil
}

// decode decodes a manifest strictly into Kubernetes's own type of its kind. A ScaledObject's type is written after
// KEDA's documentation, since KEDA's module would bring the whole of Kubernetes along.
func decode(t *testing.T, name, manifest string) any {
	t.Helper()
	var head struct{ Kind string }
	if err := yaml.Unmarshal([]byte(manifest), &head); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, manifest)
	}
	into, ok := map[string]any{
		"Deployment":              &apps.Deployment{},
		"ConfigMap":               &core.ConfigMap{},
		"Service":                 &core.Service{},
		"ServiceAccount":          &core.ServiceAccount{},
		"PodDisruptionBudget":     &policy.PodDisruptionBudget{},
		"HorizontalPodAutoscaler": &autoscaling.HorizontalPodAutoscaler{},
		"CronJob":                 &batch.CronJob{},
		"ServiceMonitor":          &monitoring.ServiceMonitor{},
		"ScaledObject":            &scaledObject{},
	}[head.Kind]
	if !ok {
		t.Fatalf("%s: unexpected kind %q", name, head.Kind)
	}
	if err := yaml.UnmarshalStrict([]byte(manifest), into); err != nil {
		t.Errorf("%s: %v\n%s", name, err, manifest)
	}
	return into
}

type scaledObject struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]any    `json:"metadata"`
	Spec       *scaledObjectSpec `json:"spec"`
}

type scaledObjectSpec struct {
	ScaleTargetRef struct {
		Name string `json:"name"`
	} `json:"scaleTargetRef"`
	MinReplicaCount *int32 `json:"minReplicaCount"`
	MaxReplicaCount *int32 `json:"maxReplicaCount"`
	Triggers        []struct {
		Type     string            `json:"type"`
		Metadata map[string]string `json:"metadata"`
	} `json:"triggers"`
}

// Every values.yaml that a page shows renders to manifests that decode.
func TestValuesOfPages(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(# values.yaml\n.*?)```")
	for _, page := range []string{"docs/deploy-kubernetes.md", "charts/queuehook/README.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		blocks := block.FindAllSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows none", page)
		}
		for _, m := range blocks {
			rendered, err := render(string(m[1]))
			if err != nil {
				t.Errorf("%s: %v", page, err)
			}
			for name, manifest := range rendered {
				if name != "NOTES.txt" {
					decode(t, name, manifest)
				}
			}
		}
	}
}

// Each testdata/NAME.values.yaml renders to testdata/NAME.yaml; `go test ./... -update` writes what it renders to now.
func TestChart(t *testing.T) {
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			values, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := render(string(values))
			if err != nil {
				t.Fatal(err)
			}
			var all bytes.Buffer
			for _, name := range slices.Sorted(func(yield func(string) bool) {
				for name := range rendered {
					if name != "NOTES.txt" && !yield(name) {
						return
					}
				}
			}) {
				switch object := decode(t, name, rendered[name]).(type) {
				case *apps.Deployment:
					pod(t, object.Spec.Template.Spec, "DISPATCHER_", config.DispatcherVariables())
					for _, e := range object.Spec.Template.Spec.Containers[0].Env {
						if !strings.HasPrefix(e.Name, "DISPATCHER_") {
							t.Setenv(e.Name, e.Value) // the routes file, which comes after it, is read with these
						}
					}
				case *batch.CronJob:
					pod(t, object.Spec.JobTemplate.Spec.Template.Spec, "JANITOR_", config.JanitorVariables())
				case *core.ConfigMap:
					routes(t, object.Data["routes.yaml"])
				}
				all.WriteString("---\n# " + name + "\n" + strings.TrimSpace(rendered[name]) + "\n")
			}
			golden := strings.Replace(file, ".values.yaml", ".yaml", 1)
			if *update {
				if err := os.WriteFile(golden, all.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), all.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

// pod checks what holds for both programs: the pod has next to no rights, and the program knows each variable that it
// gets.
func pod(t *testing.T, p core.PodSpec, prefix string, known []config.Variable) {
	t.Helper()
	c := p.Containers[0]
	if *p.AutomountServiceAccountToken || *p.EnableServiceLinks || !*p.SecurityContext.RunAsNonRoot ||
		!*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation ||
		!slices.Equal(c.SecurityContext.Capabilities.Drop, []core.Capability{"ALL"}) ||
		p.SecurityContext.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s may do too much", c.Name)
	}
	for _, e := range c.Env {
		if strings.HasPrefix(e.Name, prefix) &&
			!slices.ContainsFunc(known, func(v config.Variable) bool { return v.Name == e.Name }) {
			t.Errorf("%s does not know %s", c.Name, e.Name)
		}
	}
	mounted := map[string]bool{}
	for _, v := range p.Volumes {
		mounted[v.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !mounted[m.Name] || !m.ReadOnly {
			t.Errorf("%s: mount %s is of no volume, or can be written", c.Name, m.Name)
		}
	}
	if len(c.VolumeMounts) != len(p.Volumes) {
		t.Errorf("%s: %d volumes, %d mounts", c.Name, len(p.Volumes), len(c.VolumeMounts))
	}
}

// routes loads a routes file as the dispatcher does.
func routes(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DISPATCHER_ROUTES_FILE", file)
	if _, err := config.LoadDispatcher(); err != nil {
		t.Errorf("the dispatcher refuses the routes file: %v\n%s", err, text)
	}
}

func TestValuesAreChecked(t *testing.T) {
	const good = "redis: {url: 'redis://redis:6379/0'}\n"
	for values, want := range map[string]string{
		"":                                    "redis: want url, or secret and urlKey",
		"redis: {secret: redis}":              "redis: want url, or secret and urlKey",
		"redis: {url: 'redis://u:p@redis/0'}": "redis.url",
		"redis: {url: 'http://redis'}":        "redis.url",
		"redis: {url: 'redis://redis', passwordKey: password}": "a key is of no use without secret",
		good + "replica: 3":                                             "replica",
		good + "replicas: many":                                         "replicas",
		good + "settings: {DISPATCHER_CONCURRENCY: 64}":                 "settings.DISPATCHER_CONCURRENCY: want",
		good + "settings: {SHUTDOWN_GRACE: 5s}":                         "settings.SHUTDOWN_GRACE: want",
		good + "janitor: {settings: {REDIS_URL: x}}":                    "settings.REDIS_URL: want",
		good + "settings: {concurrency: 64}":                            "settings",
		good + "autoscaling: {by: cpu}":                                 "autoscaling.by",
		good + "autoscaling: {by: keda}":                                "autoscaling.prometheusAddress: want the address",
		good + "shutdownGraceSeconds: 0":                                "shutdownGraceSeconds",
		good + "routes: {routes: [{queue: orders}]}":                    "routes.routes.0",
		good + "image: {tag: 'v1@sha256:0'}":                            "image.tag",
		good + "image: {janitor: 'registry/janitor@sha256:0'}":          "image.janitor",
		good + "secrets: [Orders]":                                      "secrets.0",
		good + "env: [{name: DISPATCHER_SHUTDOWN_GRACE, value: 5m}]":    "env.0.name",
		good + "autoscaling: {by: hpa, minReplicas: 5, maxReplicas: 2}": "autoscaling.minReplicas: want",
		"redis: {url: 'rediss://redis', clientCertificate: true}":       "redis.tlsSecret",
	} {
		_, err := render(values)
		if err == nil {
			t.Errorf("%q is accepted", values)
		} else if normal := strings.ReplaceAll(err.Error(), "/", "."); !strings.Contains(normal, want) {
			t.Errorf("%q: %v, want %q", values, err, want)
		}
	}
}
