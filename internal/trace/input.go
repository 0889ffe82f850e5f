package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
)

// stream stands for the name of a source that has none.
const stream = "the stream"

// source is one file of a trace; its name is "" for a stream.
type source struct {
	name string
	r    io.Reader
}

// place is a line of a source.
type place struct {
	name string
	line int
}

// wrap adds the place to an error.
func (p place) wrap(err error) error {
	if p.name == "" {
		return fmt.Errorf("line %d: %w", p.line, err)
	}
	return fmt.Errorf("%s:%d: %w", p.name, p.line, err)
}

// input is what a trace is read from.
type input struct {
	sources []source
	limits  Limits
	bytes   int64 // read so far
	line    []byte
}

// lines calls each for every line that is not blank. The line is valid during
// the call only.
func (in *input) lines(each func(at place, line []byte) error) error {
	for _, s := range in.sources {
		r, err := in.open(s)
		if err != nil {
			return err
		}
		for at := (place{s.name, 1}); ; at.line++ {
			err := in.readLine(r)
			if err != nil && err != io.EOF {
				return at.wrap(err)
			}
			if line := bytes.TrimSpace(in.line); len(line) > 0 {
				if err := each(at, line); err != nil {
					return at.wrap(err)
				}
			}
			if err == io.EOF {
				break
			}
		}
	}
	return nil
}

// readLine reads the next line into in.line, with its end.
func (in *input) readLine(r *bufio.Reader) error {
	in.line = in.line[:0]
	for {
		part, err := r.ReadSlice('\n')
		if len(in.line)+len(part) > in.limits.LineBytes {
			return tooLong(in.limits.LineBytes)
		}
		in.line = append(in.line, part...)
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}

func tooLong(bound int) error { return fmt.Errorf("longer than the bound of %d bytes", bound) }

// rows calls each for every row of CSV files with a header, with the fields of the
// given columns, in their order. The fields are valid during the call only.
func (in *input) rows(columns []string, each func(at place, fields []string) error) error {
	for _, s := range in.sources {
		r, err := in.open(s)
		if err != nil {
			return err
		}
		budget := &allowance{r: r, bound: in.limits.LineBytes}
		if err := readRows(s.name, csv.NewReader(budget), budget, columns, each); err != nil {
			return err
		}
	}
	return nil
}

func readRows(name string, r *csv.Reader, budget *allowance, columns []string, each func(place, []string) error) error {
	r.ReuseRecord = true
	var index []int
	fields := make([]string, len(columns))
	for {
		budget.left = budget.bound
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return csvError(name, r, err)
		}
		line, _ := r.FieldPos(0)
		at := place{name, line}
		if index == nil {
			if index, err = indexOf(columns, row); err != nil {
				return at.wrap(err)
			}
			continue
		}
		for i, column := range index {
			fields[i] = row[column]
		}
		if err := each(at, fields); err != nil {
			return at.wrap(err)
		}
	}
}

// csvError says where a file stops being CSV, without what stands there.
func csvError(name string, r *csv.Reader, err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return place{name, parse.StartLine}.wrap(fmt.Errorf("not CSV in column %d: %w", parse.Column, parse.Err))
	}
	return fmt.Errorf("%s, about byte %d: %w", cmp.Or(name, stream), r.InputOffset(), err)
}

// indexOf finds columns in a header.
func indexOf(columns, header []string) (index []int, err error) {
	for _, want := range columns {
		found := -1
		for i, name := range header {
			if name == want {
				found = i
			}
		}
		if found < 0 {
			return nil, fmt.Errorf("a header of %d columns without %s", len(header), want)
		}
		index = append(index, found)
	}
	return index, nil
}

// allowance bounds what is read until it is renewed.
type allowance struct {
	r           io.Reader
	left, bound int
}

func (a *allowance) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, tooLong(a.bound)
	}
	n, err := a.r.Read(p[:min(len(p), a.left)])
	a.left -= n
	return n, err
}

// open begins to read a source, decompressed and without a byte order mark.
func (in *input) open(s source) (*bufio.Reader, error) {
	const buffer = 64 << 10
	r := bufio.NewReaderSize(s.r, buffer)
	if head, _ := r.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cmp.Or(s.name, stream), err)
		}
		r = bufio.NewReaderSize(z, buffer)
	}
	plain := bufio.NewReaderSize(&counter{in: in, r: r}, buffer)
	if head, _ := plain.Peek(3); string(head) == "\uFEFF" {
		_, _ = plain.Discard(len(head))
	}
	return plain, nil
}

// counter counts the bytes of an input and refuses too many of them.
type counter struct {
	in *input
	r  io.Reader
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.in.bytes += int64(n); c.in.bytes > c.in.limits.Bytes {
		return 0, fmt.Errorf("more than the bound of %d bytes, decompressed", c.in.limits.Bytes)
	}
	return n, err
}
