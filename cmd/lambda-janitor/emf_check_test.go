package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The limits of CloudWatch:
//
//   - https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
//   - https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html, API_Dimension.html,
//     API_PutMetricData.html
//   - https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html
const (
	maxLine          = 256 << 10 // bytes of a log event, with what CloudWatch Logs counts beside it
	lineOverhead     = 26
	maxMetricsInLine = 100
	maxDimensions    = 30
	maxNamespace     = 255
	maxDimensionName = 250
	maxName          = 1024
	maxPast          = 14 * 24 * time.Hour
	maxFuture        = 2 * time.Hour
)

// emfLine is the metadata of a line; a nil pointer is a missing member.
type emfLine struct {
	AWS *struct {
		Timestamp         *int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct {
				Name, Unit        string
				StorageResolution *int
			}
		}
	} `json:"_aws"`
}

// checkEMF says why CloudWatch would not take a line in its embedded metric format; nil = it would.
func checkEMF(line []byte, now time.Time) error {
	line = bytes.TrimSuffix(line, []byte("\n"))
	var meta emfLine
	members := map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal(line, &meta), json.Unmarshal(line, &members)); err != nil {
		return err
	}
	switch {
	case len(line)+lineOverhead > maxLine:
		return fmt.Errorf("%d bytes", len(line))
	case bytes.ContainsRune(line, '\n'):
		return errors.New("more than one line")
	case meta.AWS == nil || meta.AWS.Timestamp == nil || len(meta.AWS.CloudWatchMetrics) == 0:
		return errors.New("no _aws with Timestamp and CloudWatchMetrics")
	}
	if at := time.UnixMilli(*meta.AWS.Timestamp); at.Before(now.Add(-maxPast)) || at.After(now.Add(maxFuture)) {
		return fmt.Errorf("timestamp %s", at)
	}
	for _, directive := range meta.AWS.CloudWatchMetrics {
		if err := checkNamespace(directive.Namespace); err != nil {
			return err
		}
		if len(directive.Dimensions) == 0 {
			return errors.New("no set of dimensions")
		}
		for _, set := range directive.Dimensions {
			if err := checkDimensions(set, members); err != nil {
				return err
			}
		}
		if n := len(directive.Metrics); n == 0 || n > maxMetricsInLine {
			return fmt.Errorf("%d metrics", n)
		}
		seen := map[string]bool{}
		for _, m := range directive.Metrics {
			if seen[m.Name] {
				return fmt.Errorf("metric %q twice", m.Name)
			}
			seen[m.Name] = true
			if err := errors.Join(checkName(m.Name, maxName), checkUnit(m.Unit), checkValue(members[m.Name])); err != nil {
				return fmt.Errorf("metric %q: %w", m.Name, err)
			}
			if r := m.StorageResolution; r != nil && *r != 1 && *r != 60 {
				return fmt.Errorf("metric %q: storage resolution %d", m.Name, *r)
			}
		}
	}
	return nil
}

func checkNamespace(name string) error {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_/#: ", r)
	}
	if strings.TrimSpace(name) == "" || len(name) > maxNamespace || strings.HasPrefix(name, "AWS/") ||
		strings.HasPrefix(name, ":") || strings.ContainsFunc(name, other) {
		return fmt.Errorf("namespace %q", name)
	}
	return nil
}

func checkDimensions(set []string, members map[string]json.RawMessage) error {
	if len(set) > maxDimensions {
		return fmt.Errorf("%d dimensions", len(set))
	}
	for i, name := range set {
		var value string
		switch err := json.Unmarshal(members[name], &value); {
		case err != nil:
			return fmt.Errorf("dimension %q: its member is no string: %w", name, err)
		case slices.Contains(set[:i], name):
			return fmt.Errorf("dimension %q twice", name)
		case strings.HasPrefix(name, ":"):
			return fmt.Errorf("dimension %q begins with a colon", name)
		}
		if err := errors.Join(checkName(name, maxDimensionName), checkName(value, maxName)); err != nil {
			return fmt.Errorf("dimension %q: %w", name, err)
		}
	}
	return nil
}

// checkName accepts ASCII without control characters that is not all spaces.
func checkName(name string, most int) error {
	strange := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.TrimSpace(name) == "" || len(name) > most || strings.ContainsFunc(name, strange) {
		return fmt.Errorf("name or value %q", name)
	}
	return nil
}

func checkUnit(unit string) error {
	units := []string{"", "Seconds", "Microseconds", "Milliseconds", "Percent", "Count", "Count/Second", "None"}
	for _, prefix := range []string{"", "Kilo", "Mega", "Giga", "Tera"} {
		for _, of := range []string{"Bytes", "Bits"} {
			whole := prefix + of
			if prefix != "" {
				whole = prefix + strings.ToLower(of)
			}
			units = append(units, whole, whole+"/Second")
		}
	}
	if !slices.Contains(units, unit) {
		return fmt.Errorf("unit %q", unit)
	}
	return nil
}

// checkValue accepts a number, or up to 100 of them.
func checkValue(raw json.RawMessage) error {
	var one float64
	var many []float64
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return errors.New("no value")
	case json.Unmarshal(raw, &one) == nil:
		many = []float64{one}
	case json.Unmarshal(raw, &many) != nil || len(many) == 0 || len(many) > 100:
		return fmt.Errorf("value %s", raw)
	}
	for _, v := range many {
		if math.Abs(v) > math.Pow(2, 360) {
			return fmt.Errorf("value %g", v)
		}
	}
	return nil
}
