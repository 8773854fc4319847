package account

import (
	"strings"
	"unicode/utf8"

	"agentproxy/domain"
)

// MaxCode is the largest number of characters of a referral code.
const MaxCode = 64

// Assignment is the referring agent of a new account.
type Assignment struct {
	Referrer Referrer
	Named    bool // by a valid code: the reply holds referral
}

// Assign selects the referring agent of a new account. It calls fallback if
// given is false or the trimmed code is empty, else byCode, whose error for an
// unknown code is ErrReferralCode. It returns ErrReferralCode if the code is
// malformed, unknown or disabled, or differs from the referrer's in case, and
// passes on other errors of the two functions.
func Assign(code string, given bool, byCode func(code string) (Referrer, error),
	fallback func() (Referrer, error)) (Assignment, error) {
	code = strings.TrimSpace(code)
	if !given || code == "" {
		r, err := fallback()
		return Assignment{Referrer: r}, err
	}
	if codeIssue(code) != "" {
		return Assignment{}, ErrReferralCode
	}
	r, err := byCode(code)
	if err != nil {
		return Assignment{}, err
	}
	if r.Disabled || r.Code != code {
		return Assignment{}, ErrReferralCode
	}
	return Assignment{Referrer: r, Named: true}, nil
}

// Check returns a referring agent with trimmed name and code, or
// INVALID_REQUEST with every fault.
func (r Referrer) Check() (Referrer, error) {
	var issues []domain.FieldIssue
	if issue := nameIssue(r.Name); issue != "" {
		issues = append(issues, domain.FieldIssue{Field: "name", Issue: issue})
	}
	r.Name, r.Code = strings.TrimSpace(r.Name), strings.TrimSpace(r.Code)
	if issue := codeIssue(r.Code); issue != "" {
		issues = append(issues, domain.FieldIssue{Field: "code", Issue: issue})
	}
	if issues != nil {
		return r, domain.InvalidFields(issues...)
	}
	return r, nil
}

// codeIssue validates a trimmed code. A control character cannot be typed, and
// PostgreSQL text columns do not accept the character 0.
func codeIssue(code string) string {
	if code == "" || utf8.RuneCountInString(code) > MaxCode || hasControl(code, "") {
		return "must have 1 to 64 characters and no control characters"
	}
	return ""
}
