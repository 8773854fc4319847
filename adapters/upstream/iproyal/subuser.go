package upstream

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

const (
	// iproyalCapUnit is the unit of caps in bytes: a thousandth of a GB. Unverified:
	// that a GB there is 10^9 bytes, and how many decimals are kept.
	iproyalCapUnit = 1_000_000
	// iproyalSearched bounds the pages of a search for one name.
	iproyalSearched = 10
)

var (
	iproyalUser = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
	iproyalHash = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)
)

// iproyalSubUser is an access of its own: traffic that was moved to it from the
// account. Both figures are GB.
type iproyalSubUser struct {
	Hash      string `json:"hash"`
	User      string `json:"username"`
	Password  string `json:"password"`
	Available figure `json:"traffic_available"`
	Used      figure `json:"traffic_used"`
}

func (u *iproyalSubUser) check() error {
	_, available := u.Available.decimal(9, nearest)
	_, used := u.Used.decimal(9, nearest)
	if !iproyalHash.MatchString(u.Hash) || u.User == "" || !available || !used {
		return errShape
	}
	return nil
}

// available and used are bytes.
func (u iproyalSubUser) available() int64 { n, _ := u.Available.decimal(9, nearest); return n }
func (u iproyalSubUser) used() int64      { n, _ := u.Used.decimal(9, nearest); return n }

func (p *iproyal) subUserDelivery(u iproyalSubUser) procurement.Delivery {
	password := u.Password
	if password == "" {
		password = p.subUserPassword(u.User)
	}
	return procurement.Delivery{Ref: u.Hash, Label: u.User, State: procurement.Live,
		Access: procurement.Access{User: u.User, Password: password, CapBytes: u.available() + u.used()}}
}

// subUserPassword is the password of a key: nobody can guess it, and an order
// whose answer was lost has it still.
func (p *iproyal) subUserPassword(key string) string {
	mac := hmac.New(sha256.New, []byte(p.spec.Secrets["residential_key"]))
	mac.Write([]byte("sub-user password\n" + key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil)[:20]))[:26]
}

// createSubUser makes a sub-user that is called like the key of the intent and
// has the traffic that is sold, rounded up to the unit.
func (p *iproyal) createSubUser(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	if !iproyalUser.MatchString(in.Key) {
		return procurement.Delivery{}, procurement.Refuse(procurement.Invalid, "the key of the intent is no user name")
	}
	if in.SKU != "" && in.SKU != iproyalTraffic || in.Bytes <= 0 {
		return procurement.Delivery{}, procurement.Refuse(procurement.Invalid, "only traffic is sold, as "+iproyalTraffic)
	}
	if _, err := p.Endpoint(procurement.Access{}, procurement.Target{Location: in.Location}); err != nil {
		return procurement.Delivery{}, err
	}
	size := (in.Bytes + iproyalCapUnit - 1) / iproyalCapUnit * iproyalCapUnit
	body := map[string]any{"username": in.Key, "password": p.subUserPassword(in.Key), "traffic": gigabytes(size)}
	var out inData[iproyalSubUser]
	err := p.resi.callWith(ctx, once, http.MethodPost, "/residential-subusers", intentHeader(in.Key), body, &out)
	switch c := procurement.ClassOf(err); {
	case c == procurement.Invalid, c == procurement.Conflict:
		// The name is taken: by this order, when it was sent before.
		if u, ok, lost := p.searchSubUser(ctx, in.Key); lost == nil && ok {
			return p.subUserDelivery(u), nil
		}
		return procurement.Delivery{}, err
	case err != nil:
		return procurement.Delivery{}, err
	case out.V.User != in.Key:
		return procurement.Delivery{}, procurement.Refuse(procurement.Ambiguous, "the sub-user has another name than was asked for")
	}
	return p.subUserDelivery(out.V), nil
}

// gigabytes writes bytes as a number of GB, every digit of it.
func gigabytes(n int64) json.Number { return json.Number(domain.FormatDecimal(n, 9)) }

// searchSubUser finds the sub-user of a name. The seller's search finds what
// contains it.
func (p *iproyal) searchSubUser(ctx context.Context, name string) (u iproyalSubUser, ok bool, err error) {
	for page := 1; page <= iproyalSearched; page++ {
		query := url.Values{"search": {name}, "page": {strconv.Itoa(page)}, "per_page": {strconv.Itoa(iproyalPage)}}
		var out paged[iproyalSubUser]
		if err := p.resi.call(ctx, safely, http.MethodGet, "/residential-subusers?"+query.Encode(), nil, &out); err != nil {
			return u, false, err
		}
		for _, u := range out.Data {
			if u.User == name {
				if u.check() != nil {
					return u, false, procurement.Refuse(procurement.Temporary, "a sub-user is not of a shape that is known")
				}
				return u, true, nil
			}
		}
		if len(out.Data) == 0 || out.Last > 0 && page >= out.Last || out.Last == 0 && len(out.Data) < iproyalPage {
			return u, false, nil
		}
	}
	return u, false, procurement.Refuse(procurement.Temporary, "there are more sub-users than are read")
}

// subUser reads one; NotFound when it is not there.
func (p *iproyal) subUser(ctx context.Context, ref string) (iproyalSubUser, error) {
	if err := p.sells(session.Dynamic); err != nil {
		return iproyalSubUser{}, err
	}
	if !iproyalHash.MatchString(ref) {
		return iproyalSubUser{}, procurement.Refuse(procurement.NotFound, "a sub-user is known by its hash")
	}
	var out inData[iproyalSubUser]
	if err := p.resi.call(ctx, safely, http.MethodGet, "/residential-subusers/"+ref, nil, &out); err != nil {
		return iproyalSubUser{}, err
	}
	return out.V, nil
}

// deleteSubUser may be repeated: what is not there is deleted.
func (p *iproyal) deleteSubUser(ctx context.Context, ref string) error {
	if err := p.sells(session.Dynamic); err != nil {
		return err
	}
	if !iproyalHash.MatchString(ref) {
		return nil
	}
	err := p.resi.call(ctx, safely, http.MethodDelete, "/residential-subusers/"+ref, nil, nil)
	if procurement.ClassOf(err) == procurement.NotFound {
		return nil
	}
	return err
}

// Disable takes all unused traffic from a sub-user. The API has no switch, and a
// deleted sub-user has no counter any more. A call that fails has succeeded if
// nothing is left afterwards.
func (p *iproyal) Disable(ctx context.Context, ref string) error {
	u, err := p.subUser(ctx, ref)
	if err != nil || u.available() < iproyalCapUnit/2 {
		return err
	}
	body := map[string]any{"amount": gigabytes(u.available())}
	var after inData[iproyalSubUser]
	err = p.resi.call(ctx, once, http.MethodPost, "/residential-subusers/"+ref+"/take-traffic", body, &after)
	if err != nil {
		if again, lost := p.subUser(ctx, ref); lost != nil || again.available() >= iproyalCapUnit/2 {
			return err
		}
		return nil
	}
	if after.V.available() >= iproyalCapUnit/2 {
		return procurement.Refuse(procurement.Conflict, "the traffic of the sub-user was changed elsewhere at the same time")
	}
	return nil
}

// Usage is traffic_used. Unverified: how late it is told, and what it counts.
func (p *iproyal) Usage(ctx context.Context, ref string) (procurement.Usage, error) {
	u, err := p.subUser(ctx, ref)
	now := time.Now().UTC().Truncate(time.Microsecond)
	switch {
	case procurement.ClassOf(err) == procurement.NotFound:
		return procurement.Usage{AsOf: now, Gone: true}, nil
	case err != nil:
		return procurement.Usage{}, err
	}
	return procurement.Usage{Bytes: u.used(), AsOf: now}, nil
}
