package iproyal

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

const (
	// capUnit is the unit of caps in bytes, a thousandth of a GB. Unverified: that the
	// seller's GB is 10^9 bytes, and the number of decimals that it keeps.
	capUnit = 1_000_000
	// counterLag is a guess: the delay of the counter is not documented.
	counterLag = 15 * time.Minute
	// searchPages is the maximum of pages to read in a search for one name.
	searchPages = 10
)

var (
	userForm = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
	hashForm = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)
)

// subUser is a login with traffic that was moved to it from the account. Both
// amounts are GB.
type subUser struct {
	Hash      string      `json:"hash"`
	User      string      `json:"username"`
	Password  string      `json:"password"`
	Available rest.Number `json:"traffic_available"`
	Used      rest.Number `json:"traffic_used"`
}

// Check returns an error for a sub-user without its essential fields.
func (u *subUser) Check() error {
	_, available := u.Available.Decimal(9, rest.Nearest)
	_, used := u.Used.Decimal(9, rest.Nearest)
	if !hashForm.MatchString(u.Hash) || u.User == "" || !available || !used {
		return rest.ErrShape
	}
	return nil
}

// available returns the unused traffic in bytes.
func (u subUser) available() int64 { n, _ := u.Available.Decimal(9, rest.Nearest); return n }

// used returns the counted traffic in bytes.
func (u subUser) used() int64 { n, _ := u.Used.Decimal(9, rest.Nearest); return n }

func (p *Provider) subUserDelivery(u subUser) procurement.Delivery {
	password := u.Password
	if password == "" {
		password = p.subUserPassword(u.User)
	}
	return procurement.Delivery{Ref: u.Hash, Label: u.User, State: procurement.Live,
		Access: procurement.Access{User: u.User, Password: password, CapBytes: u.available() + u.used()}}
}

// subUserPassword derives the password of a sub-user from the key of its order, so
// that it is known even if the answer to the order was lost.
func (p *Provider) subUserPassword(key string) string {
	mac := hmac.New(sha256.New, []byte(p.config.ResidentialKey))
	mac.Write([]byte("sub-user password\n" + key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil)[:20]))[:26]
}

// createSubUser creates a sub-user that has the key of the intent as its name and the
// traffic of the intent, rounded up to capUnit.
func (p *Provider) createSubUser(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	if !userForm.MatchString(in.Key) {
		return procurement.Delivery{}, procurement.Refuse(procurement.Invalid, "the key of the intent is not a user name")
	}
	if in.SKU != "" && in.SKU != trafficSKU || in.Bytes <= 0 {
		return procurement.Delivery{}, procurement.Refuse(procurement.Invalid, "only traffic is sold, as "+trafficSKU)
	}
	if _, err := p.Endpoint(procurement.Access{}, procurement.Target{Location: in.Location}); err != nil {
		return procurement.Delivery{}, err
	}
	size := (in.Bytes + capUnit - 1) / capUnit * capUnit
	body := map[string]any{"username": in.Key, "password": p.subUserPassword(in.Key), "traffic": gigabytes(size)}
	var out rest.Unwrapped[subUser]
	err := p.residential.CallWith(ctx, rest.Once, http.MethodPost, "/residential-subusers", rest.RequestID(in.Key),
		body, &out)
	switch c := procurement.ClassOf(err); {
	case c == procurement.Invalid, c == procurement.Conflict:
		// The name may be taken by this order, if it was sent before.
		if u, ok, lost := p.searchSubUser(ctx, in.Key); lost == nil && ok {
			return p.subUserDelivery(u), nil
		}
		return procurement.Delivery{}, err
	case err != nil:
		return procurement.Delivery{}, err
	case out.Value.User != in.Key:
		return procurement.Delivery{}, procurement.Refuse(procurement.Ambiguous, "the sub-user has another name than "+
			"was asked for")
	}
	return p.subUserDelivery(out.Value), nil
}

// gigabytes returns a number of bytes in GB without rounding.
func gigabytes(n int64) json.Number { return json.Number(domain.FormatDecimal(n, 9)) }

// searchSubUser returns the sub-user of a name. The seller's search also finds names
// that contain it.
func (p *Provider) searchSubUser(ctx context.Context, name string) (u subUser, ok bool, err error) {
	err = p.eachSubUser(ctx, name, searchPages, func(found subUser) error {
		if found.User != name || ok {
			return nil
		}
		if found.Check() != nil {
			return procurement.Refuse(procurement.Temporary, "a sub-user is not of a shape that is known")
		}
		u, ok = found, true
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return u, ok, err
}

// errEnough ends eachSubUser.
var errEnough = errors.New("enough")

// eachSubUser calls do for the sub-users whose names contain a text, until it fails.
func (p *Provider) eachSubUser(ctx context.Context, text string, pages int, do func(subUser) error) error {
	for n := 1; n <= pages; n++ {
		query := url.Values{"page": {strconv.Itoa(n)}, "per_page": {strconv.Itoa(pageSize)}}
		if text != "" {
			query.Set("search", text)
		}
		var out page[subUser]
		if err := p.residential.Call(ctx, rest.Safely, http.MethodGet, "/residential-subusers?"+query.Encode(), nil,
			&out); err != nil {
			return err
		}
		for _, u := range out.Items {
			if err := do(u); err != nil {
				return err
			}
		}
		if out.last(n) {
			return nil
		}
	}
	return procurement.Refuse(procurement.Temporary, "there are more sub-users than are read")
}

// subUser reads a sub-user. It fails with NotFound if there is none.
func (p *Provider) subUser(ctx context.Context, ref string) (subUser, error) {
	if err := p.sells(session.Dynamic); err != nil {
		return subUser{}, err
	}
	if !hashForm.MatchString(ref) {
		return subUser{}, procurement.Refuse(procurement.NotFound, "a sub-user is known by its hash")
	}
	var out rest.Unwrapped[subUser]
	if err := p.residential.Call(ctx, rest.Safely, http.MethodGet, "/residential-subusers/"+ref, nil, &out); err != nil {
		return subUser{}, err
	}
	return out.Value, nil
}

// deleteSubUser deletes a sub-user. An unknown one is not an error, so that it can be
// repeated.
func (p *Provider) deleteSubUser(ctx context.Context, ref string) error {
	if err := p.sells(session.Dynamic); err != nil {
		return err
	}
	if !hashForm.MatchString(ref) {
		return nil
	}
	err := p.residential.Call(ctx, rest.Safely, http.MethodDelete, "/residential-subusers/"+ref, nil, nil)
	if procurement.ClassOf(err) == procurement.NotFound {
		return nil
	}
	return err
}

// Disable takes all unused traffic from a sub-user. The API has no switch, and a
// deleted sub-user has no counter any more. A call that fails has succeeded if
// nothing is left afterwards.
func (p *Provider) Disable(ctx context.Context, ref string) error {
	u, err := p.subUser(ctx, ref)
	if err != nil || u.available() < capUnit/2 {
		return err
	}
	body := map[string]any{"amount": gigabytes(u.available())}
	var after rest.Unwrapped[subUser]
	err = p.residential.Call(ctx, rest.Once, http.MethodPost, "/residential-subusers/"+ref+"/take-traffic", body, &after)
	if err != nil {
		if again, lost := p.subUser(ctx, ref); lost != nil || again.available() >= capUnit/2 {
			return err
		}
		return nil
	}
	if after.Value.available() >= capUnit/2 {
		return procurement.Refuse(procurement.Conflict, "the traffic of the sub-user was changed elsewhere at the same time")
	}
	return nil
}

// Usage returns traffic_used. Unverified: its delay, and what it counts.
func (p *Provider) Usage(ctx context.Context, ref string) (procurement.Usage, error) {
	u, err := p.subUser(ctx, ref)
	now := p.now().UTC().Truncate(time.Microsecond)
	switch {
	case procurement.ClassOf(err) == procurement.NotFound:
		return procurement.Usage{AsOf: now, Gone: true}, nil
	case err != nil:
		return procurement.Usage{}, err
	}
	return procurement.Usage{Bytes: u.used(), AsOf: now}, nil
}
