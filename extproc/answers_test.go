package extproc

import (
	"fmt"
	"sync"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"

	"github.com/warmpath/warmpath/internal/route"
)

func answerFor(i int) answer {
	return answer{decided: true, choices: [route.MaxChoices]string{fmt.Sprintf("10.0.0.%d:80", i), "10.0.1.1:80"}}
}

// An answer is made once, whoever sends it, and is what it would be if it were
// made anew.
func TestAnswersAreMadeOnce(t *testing.T) {
	var s answers
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				for _, body := range []bool{false, true} {
					p := phased{answer: answerFor(i), body: body}
					m := s.message(p)
					if _, err := proto.Marshal(m); err != nil || !proto.Equal(m, p.message()) {
						t.Errorf("%v (%v), want %v", m, err, p.message())
					}
				}
			}
		})
	}
	wg.Wait()
	if a, b := s.message(phased{answer: answerFor(1)}), s.message(phased{answer: answerFor(1)}); a != b || len(s.made) != 200 {
		t.Errorf("made anew, %d kept", len(s.made))
	}
}

// What the codec sends is what gRPC's own would.
func TestCodec(t *testing.T) {
	s := new(Server)
	c, own := s.Codec(), encoding.GetCodecV2("proto")
	retried, more, none, alone := answerFor(1), answerFor(1), answerFor(1), answerFor(1)
	retried.retryOn, retried.maxRetries = "reset", "2"
	more.retryOn, more.maxRetries = "reset", "1"
	none.setBodyMode, none.bodyMode = true, modeNone
	alone.metadataOnly = true
	var different []*extprocv3.ProcessingResponse
	for _, a := range []answer{answerFor(1), retried, more, none, alone, answerFor(2)} {
		for range 2 { // made, then kept
			different = append(different, s.toBody(a), s.toHeaders(a))
			for i, want := range []*extprocv3.ProcessingResponse{a.bodyResponse(), a.headersResponse()} {
				if got := different[len(different)-2+i]; !proto.Equal(got, want) {
					t.Errorf("%+v: %v, want %v", a, got, want)
				}
			}
		}
	}
	for _, m := range append(different,
		s.toHeaders(answerFor(1)), s.toBody(answerFor(1)), s.toHeaders(unchanged), passResponseHeaders, passResponseBody,
		passRequestTrailers, passResponseTrailers, answerFor(2).headersResponse(), s.toBody(answer{echo: &extprocv3.HttpBody{Body: []byte("part")}}),
	) {
		got, err := c.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var sent extprocv3.ProcessingResponse
		if err := own.Unmarshal(got, &sent); err != nil || !proto.Equal(&sent, m) {
			t.Errorf("%v (%v), want %v", &sent, err, m)
		}
	}
	large := answerFor(3)
	large.fleet = smallFleet + 1
	if m := s.toBody(large); s.answers.encoded(m) != nil || !proto.Equal(m, large.bodyResponse()) {
		t.Errorf("%v is kept", m)
	}
	if s.answers.encoded(s.toBody(answerFor(1))) == nil || s.answers.encoded(answerFor(1).bodyResponse()) != nil {
		t.Error("encoded is what is kept")
	}
	if _, err := c.Marshal("no message"); err == nil {
		t.Error("no error")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	var s answers
	for i := range 3 * maxAnswers {
		s.message(phased{answer: answerFor(i)})
		if len(s.made) > maxAnswers || len(s.wire) != len(s.made) {
			t.Fatalf("%d answers kept", len(s.made))
		}
	}
	kept := len(s.made)
	s.message(phased{answer: answer{echo: &extprocv3.HttpBody{Body: []byte("a client's")}}, body: true})
	if len(s.made) != kept {
		t.Error("a part of a body was kept")
	}
}
