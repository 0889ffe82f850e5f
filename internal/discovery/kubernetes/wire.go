package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/warmpath/warmpath/internal/endpointslice"
)

const (
	// pageSlices is how many slices one answer to a list has.
	pageSlices = 20
	// maxAnswer bounds one answer to a list: etcd takes objects of 1.5 MiB.
	maxAnswer = 64 << 20
	// maxEvent bounds one event of a watch.
	maxEvent = 8 << 20
	// readAhead is how many events are read while one is told.
	readAhead = 16
	// maxStatus bounds what is read of an error's text, and maxMessage what is told of it.
	maxStatus, maxMessage = 64 << 10, 300
)

// page is an answer to a list.
type page struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []endpointslice.Slice `json:"items"`
}

// list asks for one page; next is Continue of the page before, "" at first.
func (c *client) list(ctx context.Context, next string) (page, error) {
	query := url.Values{"limit": {strconv.Itoa(pageSlices)}}
	if next != "" {
		query.Set("continue", next)
	}
	return c.listQuery(ctx, query)
}

// listWhole asks for all slices in one answer.
func (c *client) listWhole(ctx context.Context) (page, error) { return c.listQuery(ctx, url.Values{}) }

func (c *client) listQuery(ctx context.Context, query url.Values) (p page, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.times.grace, fmt.Errorf("no answer in %v", c.times.grace))
	defer cancel()
	response, err := c.get(ctx, query)
	if err != nil {
		return page{}, err
	}
	defer response.Body.Close()
	bounded := &boundedReader{from: response.Body}
	bounded.allow(maxAnswer)
	if err := json.NewDecoder(bounded).Decode(&p); err != nil {
		return page{}, fmt.Errorf("list from the API server %s: %w", c.slices.Host, cause(ctx, err))
	}
	return p, nil
}

// boundedReader fails once more was read than is allowed.
type boundedReader struct {
	from       io.Reader
	most, left int
}

// allow lets n more bytes through, whatever was left.
func (b *boundedReader) allow(n int) { b.most, b.left = n, n }

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("it is longer than %d bytes", b.most)
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// event is one line of a watch.
type event struct {
	kind  string
	slice endpointslice.Slice
}

// events reads a watch.
type events struct {
	body    io.ReadCloser
	bounded *boundedReader
	decoder *json.Decoder
}

// watch asks for the changes since a version; the server is to end after d.
func (c *client) watch(ctx context.Context, version string, d time.Duration) (*events, error) {
	response, err := c.get(ctx, url.Values{
		"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version},
		"timeoutSeconds": {strconv.Itoa(max(1, int(d/time.Second)))},
	})
	if err != nil {
		return nil, err
	}
	bounded := &boundedReader{from: response.Body}
	return &events{body: response.Body, bounded: bounded, decoder: json.NewDecoder(bounded)}, nil
}

func (e *events) close() { _ = e.body.Close() }

// reading is an event, or why there is none.
type reading struct {
	event
	err error
}

// ahead reads events until the first error, which is the last reading. The caller
// takes them all; close makes the rest few.
func (e *events) ahead() <-chan reading {
	ahead := make(chan reading, readAhead)
	go func() {
		defer close(ahead)
		for {
			next, err := e.next()
			ahead <- reading{next, err}
			if err != nil {
				return
			}
		}
	}()
	return ahead
}

// next returns the next event, or io.EOF when the server has ended the watch. An
// ERROR event is an error, of code 410 one that is errExpired.
func (e *events) next() (event, error) {
	e.bounded.allow(maxEvent)
	var line struct {
		Type   string `json:"type"`
		Object struct {
			endpointslice.Slice
			status // of an ERROR
		} `json:"object"`
	}
	if err := e.decoder.Decode(&line); err != nil {
		if errors.Is(err, io.EOF) {
			return event{}, io.EOF
		}
		return event{}, fmt.Errorf("watch: %w", err)
	}
	if s := line.Object.status; line.Type == "ERROR" {
		return event{}, &refusedError{status: s.Code, text: "watch: " + strconv.Itoa(s.Code) + s.message()}
	}
	return event{kind: line.Type, slice: line.Object.Slice}, nil
}

// status is an error as the API words it.
type status struct {
	Message string `json:"message"`
	Code    int    `json:"code"`
}

// message is the text, short and on one line, or nothing.
func (s status) message() string {
	if s.Message == "" {
		return ""
	}
	return ": " + strconv.Quote(s.Message[:min(len(s.Message), maxMessage)])
}

// statusMessage reads the text of an error, if it is one of the API's.
func statusMessage(body io.Reader) string {
	var s status
	if json.NewDecoder(io.LimitReader(body, maxStatus)).Decode(&s) != nil {
		return ""
	}
	return s.message()
}
