package config

import (
	"fmt"
	"strconv"
	"time"
)

// parseDuration accepts least to most, and nothing between 0 and a tick, which Redis would round to 0. It answers what
// is wrong with the text, or "".
func parseDuration(raw string, least, most time.Duration) (d time.Duration, wrong string) {
	d, err := time.ParseDuration(raw)
	if err != nil {
		if _, numeric := strconv.ParseFloat(raw, 64); numeric == nil {
			return 0, "has no unit"
		}
		return 0, "is not a duration"
	}
	if d < least || d > most || d > 0 && d < tick {
		return 0, "is out of range"
	}
	return d, ""
}

// durationForm says what parseDuration accepts.
func durationForm(least, most time.Duration) string {
	const form = "a Go duration such as 20s or 1h30m, "
	switch {
	case most < forever:
		return form + fmt.Sprintf("from %s to %s", least, most)
	case least == 0:
		return form + fmt.Sprintf("0 or at least %s", tick)
	}
	return form + fmt.Sprintf("at least %s", least)
}

func integerForm(least, most int) string {
	return fmt.Sprintf("a decimal number from %d to %d", least, most)
}
