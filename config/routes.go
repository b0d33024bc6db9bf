package config

import (
	"errors"
	"fmt"
	"strings"
)

const routeForm = "queue=https://host/path, queue=http://host/path, queue=lambda:NAME[:QUALIFIER] or " +
	"queue=lambda:ARN, separated by spaces, newlines or commas (a comma in a URL is written %2C)"

// parseRoutes reads entries of the form queue=target. Its errors hold no part of a target, and a queue's name only
// where a target follows it: what a stray comma or space cut out of a URL can be a password. It answers all that is
// wrong; whether a queue's name can be used is not its question.
func parseRoutes(raw string) ([]Route, []error) {
	var all []Route
	var errs []error
	for i, entry := range entries(raw) {
		route, err := parseRoute(entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("entry %d %w", i+1, err))
			continue
		}
		all = append(all, route)
	}
	queues := make([]string, len(all))
	for i, r := range all {
		queues[i] = r.Queue
	}
	for _, queue := range repeated(queues) {
		errs = append(errs, fmt.Errorf("gives queue %s more than one target", quote(queue)))
	}
	return all, errs
}

func parseRoute(entry string) (Route, error) {
	queue, target, found := strings.Cut(entry, "=")
	switch {
	case targetLike(entry) || strings.Contains(queue, "://"):
		return Route{}, errors.New("has no queue before the target")
	case !found:
		return Route{}, errors.New("has no =")
	case !targetLike(target):
		return Route{}, errors.New("has no target of a known kind after its first =")
	case queue == "":
		return Route{}, errors.New("has no queue before the =")
	}
	t, err := parseTarget(target)
	if err != nil {
		return Route{}, fmt.Errorf("(queue %s) %w", quote(queue), err)
	}
	return Route{Queue: queue, Target: t}, nil
}
