package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/queuehook/queuehook/internal/script"
	"github.com/queuehook/queuehook/lifecycle"
)

// addedLine is one line of a file that became a task, as JSON shows it.
type addedLine struct {
	Line  int    `json:"line"`
	ID    string `json:"id"`
	Queue string `json:"queue"`
	Due   string `json:"due"`
}

// tasksFile is where tasks come from, one a line.
type tasksFile struct {
	name string
	in   io.Reader
	size int64 // bytes; -1 = not known
}

// openTasks opens the file of this name, or standard input for "-".
func openTasks(std stdio, name string) (file tasksFile, done func(), err error) {
	if name == "-" {
		return tasksFile{"standard input", std.in, -1}, func() {}, nil
	}
	f, err := os.Open(name) //nolint:gosec // the user's own choice
	if err != nil {
		return tasksFile{}, nil, usage{fmt.Errorf("--file: %w", err)}
	}
	file = tasksFile{name, f, -1}
	if about, err := f.Stat(); err == nil && about.Mode()&fs.ModeType == 0 {
		file.size = about.Size()
	}
	return file, func() { _ = f.Close() }, nil // nothing was written
}

// enqueueFile adds a task for each line, until a line is not a JSON value or cannot be added, and says how many it
// added.
func enqueueFile(
	ctx context.Context, std stdio, q *lifecycle.Queue, file tasksFile, options lifecycle.EnqueueOptions, asJSON bool,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bar := newByteProgress(std, file.size, "enqueue")
	total, failed := 0, error(nil)
	for chunks := readChunks(ctx, file.in); failed == nil; {
		var c chunk
		select {
		case c = <-chunks:
		case <-ctx.Done():
			failed = ctx.Err()
			continue
		}
		added, err := q.AddAll(ctx, c.payloads, options)
		var missing []int
		for i, a := range added {
			if a.ID == "" {
				missing = append(missing, c.lines[i])
				continue
			}
			total++
			if asJSON {
				err = errors.Join(err, printJSON(std.out, addedLine{c.lines[i], a.ID, q.Name(), instant(a.Due)}))
			}
		}
		if len(missing) > 0 {
			err = fmt.Errorf("%s: %w", numbers(missing), err)
			if !script.Answered(err) && !errors.Is(err, lifecycle.ErrFull) {
				err = fmt.Errorf("%w; whether these were added is not known", err)
			}
		}
		if failed = err; failed == nil {
			failed = c.err
		}
		bar.add(c.bytes)
	}
	bar.end()
	if errors.Is(failed, io.EOF) {
		failed = nil
	}
	if failed != nil {
		failed = fmt.Errorf("%s: %w; %d %s added", file.name, failed, total, plural(total, "task"))
	}
	if asJSON || failed != nil && total == 0 {
		return failed
	}
	_, err := fmt.Fprintf(std.out, "added %d %s\n", total, plural(total, "task"))
	return errors.Join(failed, err)
}

// numbers names lines by their numbers, runs of them by the first and the last.
func numbers(lines []int) string {
	noun := "line "
	if len(lines) > 1 {
		noun = "lines "
	}
	var runs []string
	for first := 0; first < len(lines); {
		last := first
		for last+1 < len(lines) && lines[last+1] == lines[last]+1 {
			last++
		}
		run := strconv.Itoa(lines[first])
		if last > first {
			run += "-" + strconv.Itoa(lines[last])
		}
		runs = append(runs, run)
		first = last + 1
	}
	return noun + strings.Join(runs, ", ")
}
