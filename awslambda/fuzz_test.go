package awslambda_test

import (
	"encoding/json"
	"testing"

	"github.com/queuehook/queuehook/awslambda"
)

// FuzzBatchAnswer checks two promises of the reader of a function's answer: a task that is listed is not done, and an
// answer that encoding/json does not take for an object or null completes no task.
func FuzzBatchAnswer(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"batchItemFailures":[]}`, `{"batchItemFailures":[{"itemIdentifier":"a"}]}`, `{"batchItemFailures":null}`,
		`{"batchItemFailures":[{"itemIdentifier":""}]}`, `{"batchItemFailures":[{"itemIdentifier":"a"}],"batchItemFailures":[]}`,
		`{"batchitemfailures":[]}`, `[]`, `"a"`, `{"batchItemFailures":["a"]}`, ``, `{`, `{"a":1e999}`,
		`{"batchItemFailures":[{"itemIdentifier":"\u0061"}]}`,
	} {
		f.Add([]byte(seed))
	}
	known := map[string]bool{"a": true, "b": true}
	f.Fuzz(func(t *testing.T, answer []byte) {
		failed, err := awslambda.Failures(answer, known)
		if err != nil {
			if failed != nil {
				t.Fatalf("%q: %v beside %v", answer, failed, err)
			}
			return
		}
		for id := range failed {
			if !known[id] {
				t.Fatalf("%q: %q is of no message", answer, id)
			}
		}
		var other map[string]any
		if err := json.Unmarshal(answer, &other); err != nil {
			t.Fatalf("%q is accepted: %v", answer, err)
		}
		list, _ := other["batchItemFailures"].([]any)
		if len(list) > 0 && len(failed) == 0 {
			t.Fatalf("%q: nobody of %v failed", answer, list)
		}
	})
}
