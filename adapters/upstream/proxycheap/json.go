package proxycheap

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// address is an address of the account.
type address struct {
	ID      rest.Number `json:"id"`
	Status  string      `json:"status"`
	Country string      `json:"countryCode"`
	Auth    struct {
		User     string `json:"username"`
		Password string `json:"password"`
	} `json:"authentication"`
	Connection struct {
		Public  string      `json:"publicIp"`
		Connect string      `json:"connectIp"`
		HTTP    rest.Number `json:"httpPort"`
		SOCKS   rest.Number `json:"socks5Port"`
	} `json:"connection"`
	Metadata struct {
		Order orderRef `json:"orderId"`
	} `json:"metadata"`
	Created string `json:"createdAt"`
	Expires string `json:"expiresAt"`
}

// orderRef is the id of an order: a UUID, a number for old ones, or missing. It is empty
// for null and for any other value.
type orderRef string

// UnmarshalJSON never fails, because one strange address must not hide the others.
func (r *orderRef) UnmarshalJSON(b []byte) error {
	text := string(b)
	_ = json.Unmarshal(b, &text)
	if *r = orderRef(text); text == "null" || !orderForm.MatchString(text) {
		*r = ""
	}
	return nil
}

// addressList is a list of addresses: {"proxies":[…]} on the live system, a
// bare array in the documentation.
type addressList []address

// UnmarshalJSON returns rest.ErrShape if there is no list.
func (l *addressList) UnmarshalJSON(b []byte) error {
	var list *[]address
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
	} else {
		var outer struct {
			Proxies *[]address `json:"proxies"`
		}
		if err := json.Unmarshal(b, &outer); err != nil {
			return err
		}
		list = outer.Proxies
	}
	if list == nil {
		return rest.ErrShape
	}
	*l = *list
	return nil
}

// deliveryOf returns an order by its addresses. It is Pending while one of them is not
// delivered, and Gone if all have ended.
func deliveryOf(ref string, proxies []address) (procurement.Delivery, error) {
	d := procurement.Delivery{Ref: ref, State: procurement.Pending, Quantity: len(proxies)}
	var waiting, over int
	for _, x := range proxies {
		created, err := parseTime(x.Created)
		if err == nil && !created.IsZero() && (d.CreatedAt.IsZero() || created.Before(d.CreatedAt)) {
			d.CreatedAt = created
		}
		d.Location = session.Location{Country: x.Country}
		switch x.Status {
		case "PENDING", "INITIATING":
			waiting++
		case "EXPIRED", "CANCELED":
			over++
		case "ACTIVE":
			ip, err := x.ip()
			if err != nil {
				return d, err
			}
			if d.ExpiresAt.IsZero() || ip.ExpiresAt.Before(d.ExpiresAt) {
				d.ExpiresAt = ip.ExpiresAt
			}
			d.IPs = append(d.IPs, ip)
		default:
			return d, procurement.Refuse(procurement.Temporary, "the status of an address is not one that is known: "+
				rest.OneLine(x.Status))
		}
	}
	switch {
	case over > 0 && over == len(proxies):
		d.State = procurement.Gone
	case waiting == 0 && len(proxies) > 0:
		d.State = procurement.Live
	}
	return d, nil
}

// ip converts an active address.
func (a address) ip() (procurement.IP, error) {
	unknown := procurement.Refuse(procurement.Temporary, "an address is not of a shape that is known")
	addr, err := netip.ParseAddr(a.Connection.Public)
	if err != nil {
		return procurement.IP{}, unknown
	}
	if _, ok := a.ID.Positive(); !ok {
		return procurement.IP{}, unknown
	}
	ip := procurement.IP{ID: string(a.ID), Addr: addr, Host: a.Connection.Connect, User: a.Auth.User,
		Password: a.Auth.Password, Country: a.Country}
	if ip.Host == "" {
		ip.Host = addr.String()
	}
	if _, err := netip.ParseAddr(ip.Host); err != nil {
		return procurement.IP{}, unknown
	}
	var http, socks bool
	ip.HTTPPort, http = portOf(a.Connection.HTTP)
	ip.SOCKSPort, socks = portOf(a.Connection.SOCKS)
	if !http || !socks || ip.HTTPPort == 0 && ip.SOCKSPort == 0 {
		return procurement.IP{}, unknown
	}
	if ip.ExpiresAt, err = parseTime(a.Expires); err != nil || ip.ExpiresAt.IsZero() {
		return procurement.IP{}, unknown
	}
	return ip, nil
}

// portOf reads a port; it is 0 if there is none.
func portOf(f rest.Number) (uint16, bool) {
	if f == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(string(f), 10, 16)
	return uint16(n), err == nil
}

// parseTime reads a time with its zone; it is zero for an empty text.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	return t.UTC(), err
}

// explainBalance is like explain for the balance, where 403 is a key without the right to read
// it. A wrong key is 401.
func explainBalance(status int, header http.Header, body []byte) *procurement.Error {
	if status == http.StatusForbidden {
		return procurement.Refuse(procurement.Unsupported, "the key has no right to read the balance")
	}
	return explain(status, header, body)
}

// explain classifies a refusal. The words for an empty stock and an empty account are
// unverified.
func explain(status int, _ http.Header, body []byte) *procurement.Error {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusPaymentRequired:
	default:
		if status >= 500 && bytes.Contains(bytes.ToLower(body), []byte("password")) {
			return procurement.Refuse(procurement.TimedOut, "status "+strconv.Itoa(status)) // it may repeat a credential
		}
		return nil
	}
	text := rest.RefusalText(body)
	class, low := procurement.Invalid, strings.ToLower(text)
	switch {
	case strings.Contains(low, "stock"):
		class = procurement.OutOfStock
	case status == http.StatusPaymentRequired, strings.Contains(low, "balance"), strings.Contains(low, "insufficient"),
		strings.Contains(low, "funds"):
		class = procurement.InsufficientFunds
	}
	return procurement.Refuse(class, strings.TrimSpace("status "+strconv.Itoa(status)+": "+text))
}
