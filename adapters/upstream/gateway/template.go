package gateway

import (
	"crypto/sha256"
	"math/big"

	"agentproxy/domain/procurement"
)

// templates are the grammar of a custom profile.
type templates struct {
	user, password []part
	alphabet       string // of tokens; the first is of its letters if there are any
	tokenLength    int
}

const (
	digits           = "0123456789"
	lettersAndDigits = "abcdefghijklmnopqrstuvwxyz" + digits
)

// credential returns user name and password for a target.
func (t *templates) credential(p Profile, a Account, want procurement.Target) (user, password string, err error) {
	values := map[string]string{"username": a.Options["username"], "password": a.Password}
	if _, err := p.place(a, want.Location, values); err != nil {
		return "", "", err
	}
	if err := p.narrow(a, want.Location, values); err != nil {
		return "", "", err
	}
	if want.Strict {
		return "", "", errNotStrict
	}
	if want.Token != "" {
		if !tokenForm.MatchString(want.Token) {
			return "", "", invalid("a token is 8 lower case letters and digits and begins with a letter")
		}
		values["token"] = t.token(want.Token)
		if values["ttl"], err = p.ttl.format(want.TTL); err != nil {
			return "", "", err
		}
	}
	used := map[string]bool{}
	user, missing := fill(t.user, values, used)
	if missing == "" {
		password, missing = fill(t.password, values, used)
	}
	if missing != "" {
		return "", "", invalid("the template needs {%s}, which the order has not", missing)
	}
	for _, word := range []string{"country", "city", "state", "asn", "token"} {
		if values[word] != "" && !used[word] { // it would be delivered from anywhere
			return "", "", invalid("the template leaves out {%s} for such an order", word)
		}
	}
	return user, password, nil
}

// token returns a token of the gateway's length and alphabet. One of the usual form is as
// it is.
func (t *templates) token(token string) string {
	if t.alphabet == lettersAndDigits && t.tokenLength == len(token) {
		return token
	}
	sum := sha256.Sum256([]byte(token))
	n, base := new(big.Int).SetBytes(sum[:]), big.NewInt(int64(len(t.alphabet)))
	out := make([]byte, t.tokenLength)
	for i := range out {
		var digit big.Int
		n.DivMod(n, base, &digit)
		out[i] = t.alphabet[digit.Int64()]
	}
	if first := t.alphabet[0]; first == 'a' {
		out[0] = 'a' + sum[31]%26
	} else if out[0] == '0' { // a number does not begin with 0
		out[0] = '1' + sum[31]%9
	}
	return string(out)
}
