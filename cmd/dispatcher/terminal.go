package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

// unseen is how long work may take before its progress is shown.
const unseen = time.Second

// confirm asks on the terminal. Everything but a yes is a no.
func confirm(ctx context.Context, std stdio, question string) (bool, error) {
	fmt.Fprintf(std.err, "%s? [y/N] ", question)
	typed := make(chan string, 1)
	// Nothing interrupts the reading of a terminal: after a signal it is left behind, and the process ends.
	go func() {
		line, _ := bufio.NewReader(std.in).ReadString('\n') // its end is a no
		typed <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(std.err)
		return false, ctx.Err()
	case answer := <-typed:
		return answer == "y" || answer == "yes", nil
	}
}

// progress is a bar on a terminal for work that takes long.
type progress struct {
	bar     *progressbar.ProgressBar
	began   time.Time
	done    int
	visible bool
}

func newProgress(std stdio, total int64, verb string) *progress {
	return startProgress(std, max(total, 1), verb, progressbar.OptionShowCount())
}

// newByteProgress counts bytes; a total of -1 is unknown.
func newByteProgress(std stdio, total int64, verb string) *progress {
	if total == 0 {
		total = 1
	}
	return startProgress(std, total, verb, progressbar.OptionShowBytes(true))
}

func startProgress(std stdio, total int64, verb string, counting progressbar.Option) *progress {
	p := &progress{began: time.Now()}
	if std.shows {
		// The spinner of an unknown total must not turn by itself: its goroutine would draw it again after end.
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(std.err), counting,
			progressbar.OptionSetDescription(verb), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetSpinnerChangeInterval(0))
	}
	return p
}

func (p *progress) add(n int) {
	p.done += n
	if p.bar == nil || !p.visible && time.Since(p.began) < unseen {
		return
	}
	p.visible = true
	done := p.done
	if most := p.bar.GetMax(); most > 0 {
		done = min(done, most)
	}
	_ = p.bar.Set(done) // who watches sees it
}

// end takes the bar away.
func (p *progress) end() {
	if p.visible {
		_ = p.bar.Clear() // who watches sees it
	}
}
