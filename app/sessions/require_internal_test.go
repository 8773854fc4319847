package sessions

import (
	"errors"
	"testing"

	"agentproxy/app/ordering"
	"agentproxy/domain/exit"
	"agentproxy/ports"
)

// A rotation whose exit others take is tried again; that the last try succeeds is its answer.
func TestRotationsWhoseExitIsTakenAreTriedAgain(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]error{0: nil, 1: nil, choices: nil, choices + 1: ports.ErrTimeout} {
		tries := 0
		done, err := rotateLearned(func(*ordering.Turn) (Done, error) {
			if tries++; tries <= failures {
				return Done{}, exit.ErrNotMet
			}
			return Done{Outcome: ports.Completed}, nil
		}, func() (*ordering.Turn, error) { return new(ordering.Turn), nil })
		if !errors.Is(err, want) || (err == nil) != (done.Outcome == ports.Completed) {
			t.Errorf("after %d failures: %+v, %v", failures, done, err)
		}
	}
}
