package account

import (
	"strings"
	"unicode/utf8"

	"agentproxy/domain"
)

// MaxCode is how many characters a referral code may have.
const MaxCode = 64

// Assignment is which referring agent a new account goes to.
type Assignment struct {
	Referrer Referrer
	Named    bool // by a valid code: the reply holds referral
}

// Assign decides on a new account's referring agent. Given says that the
// request had a referral_code; one that is empty after trimming counts as left
// out. A code is compared exactly, and one that is unknown, disabled or cannot
// exist is ErrReferralCode. At most one of the two look-ups is called; byCode
// answers ErrReferralCode for an unknown code, and other errors of either are
// passed on.
func Assign(code string, given bool, byCode func(code string) (Referrer, error), fallback func() (Referrer, error)) (Assignment, error) {
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

// Check returns a referring agent that the operator adds, name and code
// trimmed, or INVALID_REQUEST with every fault.
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

// codeIssue judges a trimmed code. A control character could not be typed, and
// no text column of PostgreSQL takes the character 0.
func codeIssue(code string) string {
	if code == "" || utf8.RuneCountInString(code) > MaxCode || hasControl(code, "") {
		return "must have 1 to 64 characters and no control characters"
	}
	return ""
}
