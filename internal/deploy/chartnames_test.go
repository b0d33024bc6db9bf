package deploy

import (
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Names and labels are such as an API server admits, with the longest name that Helm gives a release and a tag as long as
// tags may be.
func TestNamesAreAdmitted(t *testing.T) {
	values := `
image: {tag: "` + strings.Repeat("v1-", 42) + `"}
redis: {url: "redis://redis:6379/0"}
serviceMonitor: {enabled: true}
autoscaling: {by: hpa}
`
	rendered, err := renderAs(strings.Repeat("long-", 10)+"abc", values)
	if err != nil {
		t.Fatal(err)
	}
	for name, manifest := range rendered {
		if name == "NOTES.txt" {
			continue
		}
		object := decode(t, name, manifest)
		meta, ok := object.(metav1.Object)
		if !ok {
			t.Fatalf("%s: a %T has no name", name, object)
		}
		most, pods := validation.DNS1123LabelMaxLength, map[string]string(nil)
		switch o := object.(type) {
		case *apps.Deployment:
			pods = o.Spec.Template.Labels
		case *batch.CronJob:
			// Kubernetes appends 11 characters for each job.
			most, pods = validation.DNS1123LabelMaxLength-11, o.Spec.JobTemplate.Spec.Template.Labels
		case *core.ConfigMap:
			most = validation.DNS1123SubdomainMaxLength
		}
		if wrong := validation.IsDNS1123Subdomain(meta.GetName()); len(wrong) > 0 || len(meta.GetName()) > most {
			t.Errorf("%s: name %s of %d characters, %d are admitted: %v", name, meta.GetName(), len(meta.GetName()), most, wrong)
		}
		for _, labels := range []map[string]string{meta.GetLabels(), pods} {
			for key, value := range labels {
				if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
					t.Errorf("%s: label %s is %q: %v", name, key, value, wrong)
				}
			}
		}
	}
}

func TestImageByItsDigest(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	rendered, err := render(`
image: {dispatcher: "registry:5000/dispatcher` + digest + `", tag: v1}
redis: {url: "redis://redis:6379/0"}
`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"deployment.yaml": "registry:5000/dispatcher" + digest, "janitor.yaml": "queuehook/lambda-janitor:v1",
	} {
		if !strings.Contains(rendered[name], `image: "`+want+`"`) {
			t.Errorf("%s: no image %s in\n%s", name, want, rendered[name])
		}
	}
}
