package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// namespace is where CloudWatch files the figures, one dimension: the queue.
const namespace = "queuehook"

// metric is one figure of a queue.
type metric struct {
	Name  string  `json:"Name"`
	Unit  string  `json:"Unit"`
	value float64 // a member of its own on the line
}

// metrics are the figures of the answer under the same names; ids are counted. Unknown depths are left out.
func (s swept) metrics() []metric {
	all := []metric{
		{"dead_dispatchers", "Count", float64(len(s.Dead))},
		{"recovered", "Count", float64(s.Recovered)},
		{"buried", "Count", float64(s.Buried)},
		{"left", "Count", float64(s.Left)},
	}
	if l := s.Legacy; l != nil {
		all = append(all,
			metric{"legacy_workers", "Count", float64(len(l.Workers))},
			metric{"legacy_recovered", "Count", float64(l.Moved)},
		)
	}
	if !s.measured {
		return all
	}
	return append(all,
		metric{"ready", "Count", float64(s.Ready)},
		metric{"delayed", "Count", float64(s.Delayed)},
		metric{"in_flight", "Count", float64(s.InFlight)},
		metric{"dead", "Count", float64(s.DeadLetters)},
		metric{"oldest_ready_seconds", "Seconds", s.OldestReady},
		metric{"live_dispatchers", "Count", float64(s.Live)},
	)
}

// printEMF writes a line for each queue in CloudWatch's embedded metric format, which CloudWatch Logs turns into metrics:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
func (a answer) printEMF(w io.Writer, now time.Time) error {
	for _, q := range a.Queues {
		metrics := q.metrics()
		line := map[string]any{
			"queue": dimension(q.Name),
			"_aws": map[string]any{
				"Timestamp": now.UnixMilli(),
				"CloudWatchMetrics": []any{map[string]any{
					"Namespace": namespace, "Dimensions": [][]string{{"queue"}}, "Metrics": metrics,
				}},
			},
		}
		for _, m := range metrics {
			line[m.Name] = m.value
		}
		if err := encode(w, line); err != nil {
			return fmt.Errorf("print metrics: %w", err)
		}
	}
	return nil
}

// dimension writes a queue's name as CloudWatch takes it: in ASCII, and with no colon at its beginning.
func dimension(queue string) string {
	quoted := strconv.QuoteToASCII(queue)
	ascii := quoted[1 : len(quoted)-1]
	if strings.HasPrefix(ascii, ":") {
		return `\x3a` + ascii[1:]
	}
	return ascii
}
