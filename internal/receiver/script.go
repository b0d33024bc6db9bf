package receiver

import (
	"math/rand/v2"
	"strconv"
	"sync"
)

// Script decides the answer to a request from what is known before its body is read. Requests ask it at the same time.
type Script func(Request) Answer

// Always gives the same answer.
func Always(a Answer) Script {
	return func(Request) Answer { return a }
}

// Sequence gives one answer after the other, in order of arrival, and the last for ever.
func Sequence(answers ...Answer) Script {
	var mu sync.Mutex
	next := 0
	return func(Request) Answer {
		mu.Lock()
		defer mu.Unlock()
		if next < len(answers) {
			next++
		}
		return nth(answers, next)
	}
}

// ByAttempt gives the n-th answer to a task's n-th charged attempt (header Dispatch-Attempt) and the last for ever. It
// keeps no state, so it suits a receiver that runs for long.
func ByAttempt(answers ...Answer) Script {
	return func(r Request) Answer {
		n, err := strconv.Atoi(r.Header.Get(AttemptHeader))
		if err != nil {
			n = 1
		}
		return nth(answers, min(max(n, 1), len(answers)))
	}
}

// nth is the n-th of the answers, counted from 1, or 204.
func nth(answers []Answer, n int) Answer {
	if n < 1 || n > len(answers) {
		return Answer{}
	}
	return answers[n-1]
}

// EachTask gives every task a script of its own, made by newScript at its first request:
// EachTask(func() Script { return Sequence(Status(500), Status(204)) }) fails each task once. It remembers every task
// id, so it is for tests.
func EachTask(newScript func() Script) Script {
	var mu sync.Mutex
	scripts := map[string]Script{}
	return func(r Request) Answer {
		mu.Lock()
		s, ok := scripts[r.TaskID]
		if !ok {
			s = newScript()
			scripts[r.TaskID] = s
		}
		mu.Unlock()
		return s(r)
	}
}

// ByTask follows the script named by the task id, and otherwise for the rest.
func ByTask(scripts map[string]Script, otherwise Script) Script {
	return func(r Request) Answer {
		if s, ok := scripts[r.TaskID]; ok {
			return s(r)
		}
		return otherwise(r)
	}
}

// ByPath follows the script named by the URL's path, and otherwise for the rest.
func ByPath(scripts map[string]Script, otherwise Script) Script {
	return func(r Request) Answer {
		if s, ok := scripts[r.Path]; ok {
			return s(r)
		}
		return otherwise(r)
	}
}

// Share is an answer and its weight.
type Share struct {
	Weight float64
	Answer Answer
}

// Mix draws each answer anew, by weight. The same seed gives the same answers in order of arrival.
func Mix(seed uint64, shares ...Share) Script {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // reproducible on purpose
	total := 0.0
	for _, s := range shares {
		total += s.Weight
	}
	return func(Request) Answer {
		mu.Lock()
		x := rng.Float64() * total
		mu.Unlock()
		for _, s := range shares {
			if x -= s.Weight; x < 0 {
				return s.Answer
			}
		}
		return Answer{}
	}
}

// Fraction answers bad to a part p (0 to 1) of the requests and good to the rest, drawn as Mix does.
func Fraction(seed uint64, p float64, bad, good int) Script {
	return Mix(seed, Share{p, Status(bad)}, Share{1 - p, Status(good)})
}
