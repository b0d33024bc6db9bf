package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	maxLine = 64 << 20
	// What is read goes on in chunks: so much of it, or as much as is there.
	chunkLines = 1000
	chunkBytes = 1 << 20
)

var errTooLong = errors.New("longer than 64 MB")

// chunk is some lines of a file, and the error that ended it.
type chunk struct {
	payloads [][]byte
	lines    []int // their numbers
	bytes    int   // of the file, up to here since the last chunk
	err      error // of the line after them; io.EOF at the end
}

// readChunks reads a file of one JSON value a line, without blank lines. Each line's bytes stay as they are, without
// the newline. When the next line is not there yet, the lines so far are handed out at once. The channel is closed
// after the chunk with an error, or once ctx has ended.
func readChunks(ctx context.Context, file io.Reader) <-chan chunk {
	chunks := make(chan chunk)
	// Nothing interrupts the reading of a pipe: after a signal it is left behind, and the process ends.
	go func() {
		defer close(chunks)
		r := &lineReader{r: bufio.NewReaderSize(file, chunkBytes)}
		for {
			c := r.chunk()
			select {
			case chunks <- c:
			case <-ctx.Done():
				return
			}
			if c.err != nil {
				return
			}
		}
	}()
	return chunks
}

type lineReader struct {
	r    *bufio.Reader
	line int // the number of the last one
}

func (l *lineReader) chunk() chunk {
	var c chunk
	size := 0
	for {
		payload, n, err := l.next()
		c.bytes += n
		if len(payload) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			if invalid := checkJSON(payload); invalid != nil {
				err = fmt.Errorf("line %d: %w", l.line, invalid)
			} else {
				c.payloads, c.lines = append(c.payloads, payload), append(c.lines, l.line)
				size += len(payload)
			}
		}
		if c.err = err; err != nil {
			return c
		}
		if len(c.payloads) > 0 && (len(c.payloads) == chunkLines || size >= chunkBytes || !l.ready()) {
			return c
		}
	}
}

// next reads one line, which is empty when it is blank, and how many bytes it took.
func (l *lineReader) next() (payload []byte, n int, err error) {
	l.line++
	for {
		part, err := l.r.ReadSlice('\n')
		n += len(part)
		payload = append(payload, part...)
		switch {
		case len(payload) > maxLine+1:
			return nil, n, fmt.Errorf("line %d: %w", l.line, errTooLong)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, n, fmt.Errorf("line %d: %w", l.line, err)
		}
		payload = bytes.TrimSuffix(payload, []byte("\n"))
		if len(bytes.Trim(payload, " \t\r")) == 0 {
			payload = nil
		}
		return payload, n, err
	}
}

// ready reports whether the next line can be read without waiting.
func (l *lineReader) ready() bool {
	there, _ := l.r.Peek(l.r.Buffered()) // it asks for no more than is there
	return bytes.IndexByte(there, '\n') >= 0
}

// checkJSON says where a text stops being a JSON value, without showing the text.
func checkJSON(text []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	if err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("no JSON value, at byte %d", syntax.Offset)
	}
	return errors.New("no JSON value")
}
