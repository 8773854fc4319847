package supply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"agentproxy/domain/supply"
)

func TestClassOfAnError(t *testing.T) {
	refused := supply.Refuse(supply.OutOfStock, "none left")
	for _, c := range []struct {
		claim string
		err   error
		class supply.Class
		words string
	}{
		{"none", nil, "", ""},
		{"a refusal", refused, supply.OutOfStock, "none left"},
		{"a refusal that was wrapped", fmt.Errorf("order: %w", refused), supply.OutOfStock, "none left"},
		{"a refusal among others", errors.Join(errors.New("x"), refused), supply.OutOfStock, "none left"},
		{"what nobody classified proves nothing", errors.New("broken"), supply.Ambiguous, ""},
		{"nor does a caller who left", context.Canceled, supply.Ambiguous, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got := supply.ClassOf(c.err); got != c.class {
				t.Errorf("the class is %q, want %q", got, c.class)
			}
			if got := supply.ReasonOf(c.err); got != c.words {
				t.Errorf("the reason is %q, want %q", got, c.words)
			}
		})
	}
}

func TestErrorSaysItsClassAndTheReason(t *testing.T) {
	if got := supply.Refuse(supply.Auth, "").Error(); got != "provider: auth" {
		t.Errorf("without a reason: %q", got)
	}
	if got := supply.Refuse(supply.Auth, "Error api key").Error(); got != "provider: auth: Error api key" {
		t.Errorf("with a reason: %q", got)
	}
}

func TestReasonIsAtMost200Characters(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int
	}{{strings.Repeat("x", 200), 200}, {strings.Repeat("x", 201), 200}, {strings.Repeat("é", 200), 200}, {strings.Repeat("é", 1000), 200}, {"", 0}} {
		got := supply.Refuse(supply.Invalid, c.in).Reason
		if utf8.RuneCountInString(got) != c.want || !utf8.ValidString(got) || !strings.HasPrefix(c.in, got) {
			t.Errorf("%d characters became %d", utf8.RuneCountInString(c.in), utf8.RuneCountInString(got))
		}
	}
}
