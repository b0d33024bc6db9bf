package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

// serve answers Lambda's invocations until ctx ends. A runtime API that goes away ends the process, as Lambda expects.
func serve(ctx context.Context, s sweeper, stdout io.Writer) int {
	f := &function{stopping: ctx, sweeper: s, stdout: stdout}
	go lambda.StartWithOptions(f) // never returns; the process ends with it, or below
	<-ctx.Done()
	f.busy.Lock() // for good: an invocation under way sees ctx end and finishes, none begins
	return exitOK
}

// function is the Lambda function.
type function struct {
	stopping context.Context //nolint:containedctx // the process's end, which the runtime's contexts know nothing of
	sweeper  sweeper
	stdout   io.Writer
	busy     sync.Mutex
}

// Invoke sweeps, whatever the event says, and answers or fails after having swept what it could. What it answers it also
// writes to standard output, which is the function's log, and beside it the metrics.
func (f *function) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	f.busy.Lock()
	defer f.busy.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.stopping, cancel)() //nolint:contextcheck // two ends of one invocation

	a := f.sweeper.sweep(ctx)
	var text bytes.Buffer
	if err := a.print(&text); err != nil {
		return nil, err
	}
	if _, err := f.stdout.Write(text.Bytes()); err != nil {
		return nil, fmt.Errorf("log answer: %w", err)
	}
	if err := a.printEMF(f.stdout, time.Now()); err != nil {
		return nil, err
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(text.Bytes()), nil
}
