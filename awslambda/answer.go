package awslambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// failures reads which of a batch's messages a function answers as failed. The rules are those of
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html: null, an empty object, and a list that is
// null or empty mean that none failed. Anything else that is not a list of known, non-empty item identifiers is an error,
// and none of the batch counts as done. encoding/json's own matching of names would take batchitemfailures for the list.
func failures(answer []byte, known map[string]bool) (map[string]bool, error) {
	response, err := members(answer)
	if err != nil || len(response) == 0 {
		return nil, err
	}
	raw, found := response["batchItemFailures"]
	if !found {
		return nil, errors.New("it has no batchItemFailures")
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, errors.New("its batchItemFailures are not a list")
	}
	failed := make(map[string]bool, len(items))
	for i, raw := range items {
		item, err := members(raw)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		var id *string
		if json.Unmarshal(item["itemIdentifier"], &id) != nil || id == nil || !known[*id] {
			return nil, fmt.Errorf("item %d names no message of the batch", i)
		}
		failed[*id] = true
	}
	return failed, nil
}

var (
	errNotJSON   = errors.New("it is not JSON")
	errNotObject = errors.New("it is not an object")
	errTwice     = errors.New("it has a name twice")
)

// members are an object's by their exact names; none when it is null. A name that stands there twice is an error: which
// of the two counts is anybody's guess.
func members(raw []byte) (map[string]json.RawMessage, error) {
	if !json.Valid(raw) {
		return nil, errNotJSON
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	switch begin, err := d.Token(); {
	case err != nil:
		return nil, errNotJSON
	case begin == nil:
		return nil, nil
	case begin != json.Delim('{'):
		return nil, errNotObject
	}
	all := make(map[string]json.RawMessage)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errNotJSON
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errNotJSON
		}
		key, _ := name.(string) // nothing else can be a name in valid JSON
		if _, twice := all[key]; twice {
			return nil, errTwice
		}
		all[key] = value
	}
	return all, nil
}
