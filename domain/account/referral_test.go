package account_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"agentproxy/domain/account"
)

var (
	openAgent = account.Referrer{ID: "ref_0", Name: "openAgent", Default: true}
	partner   = account.Referrer{ID: "ref_1", Name: "Partner", Code: "Partner-1"}
	gone      = account.Referrer{ID: "ref_2", Name: "Gone", Code: "gone", Disabled: true}
)

// lookUp is a store that, like some, compares without regard to case.
func lookUp(code string) (account.Referrer, error) {
	for _, r := range []account.Referrer{partner, gone} {
		if strings.EqualFold(r.Code, code) {
			return r, nil
		}
	}
	return account.Referrer{}, account.ErrReferralCode
}

func TestAssign(t *testing.T) {
	for _, c := range []struct {
		claim, code string
		given       bool
		want        account.Referrer // zero: refused
	}{
		{"a valid code names the referring agent", "Partner-1", true, partner},
		{"it is trimmed", " \tPartner-1\n", true, partner},
		{"no code is the default", "", false, openAgent},
		{"an empty code is no code", "", true, openAgent},
		{"nor is one of spaces", "  ", true, openAgent},
		{"an unknown code is refused", "unknown", true, account.Referrer{}},
		{"a disabled code is refused", "gone", true, account.Referrer{}},
		{"the case matters", "partner-1", true, account.Referrer{}},
		{"a code that is too long is refused", strings.Repeat("x", 65), true, account.Referrer{}},
		{"a code with a zero byte is refused", "Partner\x00-1", true, account.Referrer{}},
		{"a code that is no text is refused", "Partner\xff", true, account.Referrer{}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := account.Assign(c.code, c.given, lookUp, func() (account.Referrer, error) { return openAgent, nil })
			if c.want == (account.Referrer{}) {
				if !errors.Is(err, account.ErrReferralCode) || got != (account.Assignment{}) {
					t.Errorf("got %+v, %v, want INVALID_REFERRAL_CODE", got, err)
				}
				return
			}
			if err != nil || got.Referrer != c.want || got.Named != (c.want != openAgent) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	t.Run("a code that cannot exist is not looked up", func(t *testing.T) {
		never := func(string) (account.Referrer, error) { t.Error("looked up"); return account.Referrer{}, nil }
		if _, err := account.Assign(strings.Repeat("ü", 65), true, never, nil); !errors.Is(err, account.ErrReferralCode) {
			t.Error(err)
		}
	})
	t.Run("what fails in the store is passed on", func(t *testing.T) {
		broken := errors.New("store")
		_, err := account.Assign("x", true, func(string) (account.Referrer, error) { return account.Referrer{}, broken }, nil)
		if !errors.Is(err, broken) {
			t.Error(err)
		}
		if _, err = account.Assign("", false, nil, func() (account.Referrer, error) { return account.Referrer{}, broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

func TestReferrer(t *testing.T) {
	r, err := account.Referrer{Name: " Partner ", Code: " P-1 "}.Check()
	if err != nil || r.Name != "Partner" || r.Code != "P-1" {
		t.Errorf("got %+v, %v", r, err)
	}
	_, err = account.Referrer{Name: "P", Code: " "}.Check()
	if got := faults(t, err); !slices.Equal(got, []string{"name", "code"}) {
		t.Errorf("faults in %v", got)
	}
	if _, err = (account.Referrer{Name: "Partner", Code: strings.Repeat("ü", 64)}).Check(); err != nil {
		t.Errorf("64 characters are refused: %v", err)
	}
}
