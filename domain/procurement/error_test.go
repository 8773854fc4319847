package procurement_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"agentproxy/domain/procurement"
)

func TestClassOfAnError(t *testing.T) {
	refused := procurement.Refuse(procurement.OutOfStock, "none left")
	for _, c := range []struct {
		claim string
		err   error
		class procurement.Class
		words string
	}{
		{"none", nil, "", ""},
		{"a refusal", refused, procurement.OutOfStock, "none left"},
		{"a refusal that was wrapped", fmt.Errorf("order: %w", refused), procurement.OutOfStock, "none left"},
		{"a refusal among others", errors.Join(errors.New("x"), refused), procurement.OutOfStock, "none left"},
		{"an unclassified error proves nothing", errors.New("broken"), procurement.Ambiguous, ""},
		{"nor does a caller who left", context.Canceled, procurement.Ambiguous, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got := procurement.ClassOf(c.err); got != c.class {
				t.Errorf("the class is %q, want %q", got, c.class)
			}
			if got := procurement.ReasonOf(c.err); got != c.words {
				t.Errorf("the reason is %q, want %q", got, c.words)
			}
		})
	}
}

func TestErrorHasItsClassAndTheReason(t *testing.T) {
	if got := procurement.Refuse(procurement.Auth, "").Error(); got != "provider: auth" {
		t.Errorf("without a reason: %q", got)
	}
	if got := procurement.Refuse(procurement.Auth, "Error api key").Error(); got != "provider: auth: Error api key" {
		t.Errorf("with a reason: %q", got)
	}
}

func TestReasonIsAtMost200Characters(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int
	}{{strings.Repeat("x", 200), 200}, {strings.Repeat("x", 201), 200}, {strings.Repeat("é", 200), 200}, {strings.Repeat("é", 1000), 200}, {"", 0}} {
		got := procurement.Refuse(procurement.Invalid, c.in).Reason
		if utf8.RuneCountInString(got) != c.want || !utf8.ValidString(got) || !strings.HasPrefix(c.in, got) {
			t.Errorf("%d characters became %d", utf8.RuneCountInString(c.in), utf8.RuneCountInString(got))
		}
	}
}
