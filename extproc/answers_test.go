package extproc

import (
	"fmt"
	"sync"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
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

func TestAnswersAreBounded(t *testing.T) {
	var s answers
	for i := range 3 * maxAnswers {
		s.message(phased{answer: answerFor(i)})
		if len(s.made) > maxAnswers {
			t.Fatalf("%d answers kept", len(s.made))
		}
	}
	kept := len(s.made)
	s.message(phased{answer: answer{echo: &extprocv3.HttpBody{Body: []byte("a client's")}}, body: true})
	if len(s.made) != kept {
		t.Error("a part of a body was kept")
	}
}
