package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queuehook/queuehook/internal/sweepanswer"
)

func TestEMF(t *testing.T) {
	t.Parallel()
	a := collect([]swept{
		{Queue: sweepanswer.Queue{Name: "tâches", Recovered: 1}},
		{
			Queue: sweepanswer.Queue{Name: "orders", Dead: []string{"x", "y"}, Recovered: 3},
			Ready: 7, OldestReady: 1.5, Live: 2, measured: true,
		},
	})
	var out bytes.Buffer
	if err := a.printEMF(&out, time.UnixMilli(1_700_000_000_000)); err != nil {
		t.Fatal(err)
	}
	const count = `","Unit":"Count"}`
	names := `{"Name":"dead_dispatchers` + count + `,{"Name":"recovered` + count + `,{"Name":"buried` + count + `,{"Name":"left` + count
	more := `,{"Name":"ready` + count + `,{"Name":"delayed` + count + `,{"Name":"in_flight` + count + `,{"Name":"dead` + count +
		`,{"Name":"oldest_ready_seconds","Unit":"Seconds"},{"Name":"live_dispatchers` + count
	head := `{"_aws":{"CloudWatchMetrics":[{"Dimensions":[["queue"]],"Metrics":[`
	tail := `],"Namespace":"queuehook"}],"Timestamp":1700000000000},`
	want := head + names + more + tail + `"buried":0,"dead":0,"dead_dispatchers":2,"delayed":0,"in_flight":0,"left":0,` +
		`"live_dispatchers":2,"oldest_ready_seconds":1.5,"queue":"orders","ready":7,"recovered":3}` + "\n" +
		head + names + tail + `"buried":0,"dead_dispatchers":0,"left":0,"queue":"t\\u00e2ches","recovered":1}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// Whatever a queue is called, CloudWatch takes its line.
func TestEMFOfStrangeQueues(t *testing.T) {
	t.Parallel()
	names := []string{
		"orders", "{shop}:orders", ":orders", "tâches", "\x01", `"`, `\`, `a"`, "<&>", "\u2028", strings.Repeat("\x7f", 200),
		strings.Repeat("é", 100), strings.Repeat("\U0001f600", 50),
	}
	seen := map[string]string{}
	for _, name := range names {
		if other, twice := seen[dimension(name)]; twice {
			t.Errorf("%q and %q have one dimension", name, other)
		}
		seen[dimension(name)] = name
		for _, measured := range []bool{true, false} {
			var out bytes.Buffer
			a := answer{Queues: []swept{{Queue: sweepanswer.New(name), Legacy: sweepanswer.NewLegacy(), measured: measured}}}
			if err := a.printEMF(&out, time.Now()); err != nil {
				t.Fatal(err)
			}
			if err := checkEMF(out.Bytes(), time.Now()); err != nil {
				t.Errorf("queue %q: %v in %s", name, err, &out)
			}
		}
	}
}

// The check above does find what is wrong.
func TestCheckEMF(t *testing.T) {
	t.Parallel()
	good := `{"queue":"orders","_aws":{"Timestamp":1700000000000,"CloudWatchMetrics":[{"Namespace":"queuehook",` +
		`"Dimensions":[["queue"]],"Metrics":[{"Name":"ready","Unit":"Count"}]}]},"ready":7}`
	now := time.UnixMilli(1_700_000_000_000)
	if err := checkEMF([]byte(good), now); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`"queue":"orders"`, `"queue":7`},
		{`"queue":"orders"`, `"queue":"tâches"`},
		{`"queue":"orders"`, `"queue":" "`},
		{`"queue":"orders"`, `"queue":"` + strings.Repeat("a", 1025) + `"`},
		{`"queue":"orders"`, `"queue":"orders","more":"` + strings.Repeat("a", 256<<10) + `"`},
		{`[["queue"]]`, `[["queue","region"]]`},
		{`[["queue"]]`, `[]`},
		{`[["queue"]]`, `["queue"]`},
		{`"queuehook"`, `"AWS/queuehook"`},
		{`"queuehook"`, `""`},
		{`"Count"`, `"count"`},
		{`"Count"`, `"Count","StorageResolution":5`},
		{`[{"Name":"ready","Unit":"Count"}]`, `[]`},
		{`[{"Name":"ready","Unit":"Count"}]`, `[{"Name":"ready"},{"Name":"ready"}]`},
		{`"ready":7`, `"ready":"7"`},
		{`"ready":7`, `"steady":7`},
		{`1700000000000`, `1700000000`},
		{`"Timestamp":1700000000000,`, ``},
		{`"_aws"`, `"aws"`},
	} {
		if line := strings.Replace(good, c[0], c[1], 1); checkEMF([]byte(line), now) == nil {
			t.Errorf("no fault found in %.300s", line)
		}
	}
}

// Alarms and autoscaling of the Terraform module read what is written here, under the same names.
func TestTerraformReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	written := map[string]bool{}
	for _, m := range (swept{measured: true}).metrics() {
		written[m.Name] = true
	}
	metric := regexp.MustCompile(`namespace += "` + namespace + `"\s+metric_name += "(\w+)"`)
	read := 0
	for _, file := range []string{"modules/alarms/main.tf", "modules/dispatcher/autoscaling.tf"} {
		text, err := os.ReadFile(filepath.Join("../../terraform", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range metric.FindAllStringSubmatch(string(text), -1) {
			read++
			if !written[m[1]] {
				t.Errorf("%s reads %s, which nobody writes", file, m[1])
			}
		}
	}
	if read != 5 {
		t.Errorf("%d metrics are read, want the 3 of the alarms and the 2 of autoscaling", read)
	}
}
