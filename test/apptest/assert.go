package apptest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentproxy/domain"
)

// Gigabytes returns the bytes of a decimal number of GB. It panics if text is not a number.
func Gigabytes(text string) *int64 {
	n, err := domain.ParseDecimal(text, 9)
	if err != nil {
		panic(err)
	}
	return &n
}

// OK stops the test if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ErrorIs stops the test if err does not match want as errors.Is defines it.
func ErrorIs(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// Equal reports a failure of the test if got, which what names, is not want.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Dollars returns an amount of money. It panics if text is not one.
func Dollars(text string) domain.Money { return domain.MustMoney(text) }

// Concurrently calls fn with 0 to n-1 in goroutines that start together, and returns when
// all calls have returned.
func Concurrently(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// InvalidFields returns the names of the fields that a validation error lists, or the text
// of another error.
func InvalidFields(err error) string {
	var e *domain.Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	var names []string
	issues, _ := e.Details["fields"].([]domain.FieldIssue)
	for _, issue := range issues {
		names = append(names, issue.Field)
	}
	return strings.Join(names, ", ")
}
