package domain_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"agentproxy/domain"
)

var errSample = &domain.Error{Kind: domain.Conflict, Code: "SAMPLE", Message: "the message"}

func TestError(t *testing.T) {
	t.Run("a reworded copy equals its sentinel, wrapped or not", func(t *testing.T) {
		reworded := errSample.Msgf("%d of them", 3).With("n", 3).After(time.Second)
		if !errors.Is(reworded, errSample) || !errors.Is(fmt.Errorf("wrapped: %w", reworded), errSample) {
			t.Error("it does not")
		}
		if reworded.Message != "3 of them" || reworded.RetryAfter != time.Second || reworded.Details["n"] != 3 || reworded.Kind != domain.Conflict {
			t.Errorf("the copy is %+v", reworded)
		}
	})
	t.Run("another code is another error", func(t *testing.T) {
		if errors.Is(errSample, domain.ErrInvalid) || errors.Is(errSample, errors.New("SAMPLE")) {
			t.Error("they are equal")
		}
	})
	t.Run("two copies with one code are two errors", func(t *testing.T) {
		a, b := errSample.Msgf("a"), errSample.Msgf("b")
		if errors.Is(a, b) || errors.Is(b, a) || errors.Is(errSample, a) || !errors.Is(a.With("n", 1), a) {
			t.Error("they are equal, or a copy of one is not")
		}
	})
	t.Run("a copy leaves what it was made of alone", func(t *testing.T) {
		first := errSample.With("a", 1)
		second := first.With("b", 2)
		first.With("a", 3)
		if errSample.Details != nil || len(first.Details) != 1 || first.Details["a"] != 1 || len(second.Details) != 2 {
			t.Errorf("sentinel %v, first %v, second %v", errSample.Details, first.Details, second.Details)
		}
		if errSample.Message != "the message" || errSample.RetryAfter != 0 {
			t.Errorf("the sentinel is now %+v", errSample)
		}
	})
	t.Run("its text has the code and the message", func(t *testing.T) {
		if got := errSample.Error(); got != "SAMPLE: the message" {
			t.Error(got)
		}
	})
	t.Run("an unclassified error is internal", func(t *testing.T) {
		if (&domain.Error{}).Kind != domain.Internal {
			t.Error("it is not")
		}
	})
}

func TestInvalidFields(t *testing.T) {
	e := domain.InvalidFields(domain.FieldIssue{Field: "a.b", Issue: "is missing"}, domain.FieldIssue{Field: "c", Issue: "is wrong"})
	if !errors.Is(e, domain.ErrInvalid) || e.Kind != domain.Invalid || e.Message != "a.b is missing" || len(e.Details["fields"].([]domain.FieldIssue)) != 2 {
		t.Errorf("got %+v", e)
	}
	one := domain.InvalidField("c", "must be %d", 5)
	if want := []domain.FieldIssue{{Field: "c", Issue: "must be 5"}}; !slices.Equal(one.Details["fields"].([]domain.FieldIssue), want) {
		t.Errorf("got %+v", one)
	}
	if none := domain.InvalidFields(); none.Message != domain.ErrInvalid.Message {
		t.Errorf("no fault, and the message is %q", none.Message)
	}
	if domain.ErrInvalid.Details != nil {
		t.Error("the sentinel was changed")
	}
}

func TestPage(t *testing.T) {
	for _, c := range []struct{ number, size, want int }{
		{1, 20, 0}, {2, 20, 20}, {11, 100, 1000}, {math.MaxInt, 100, 1 << 40},
	} {
		if got := (domain.Page{Number: c.number, Size: c.size}).Offset(); got != c.want {
			t.Errorf("before page %d of %d are %d items, want %d", c.number, c.size, got, c.want)
		}
	}
	for number := 1; number > 0; number *= 2 {
		if got := (domain.Page{Number: number, Size: domain.MaxPageSize}).Offset(); got < 0 || number < 1<<33 && got != (number-1)*100 {
			t.Errorf("before page %d are %d items", number, got)
		}
	}
	for _, c := range []struct{ total, size, want int }{{0, 20, 0}, {1, 20, 1}, {20, 20, 1}, {21, 20, 2}} {
		if got := (domain.List[int]{Total: c.total, Page: domain.Page{Number: 1, Size: c.size}}).TotalPages(); got != c.want {
			t.Errorf("%d items fill %d pages, want %d", c.total, got, c.want)
		}
	}
}
