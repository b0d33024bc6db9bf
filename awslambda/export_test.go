package awslambda

// Waiting is how many tasks wait for a batch.
func (tg *Target) Waiting() int {
	tg.gatherer.mu.Lock()
	defer tg.gatherer.mu.Unlock()
	return len(tg.gatherer.waiting)
}

// Failures is the reader of a batch's answer.
func Failures(answer []byte, known map[string]bool) (map[string]bool, error) {
	return failures(answer, known)
}
