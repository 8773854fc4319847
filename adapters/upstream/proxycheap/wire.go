package upstream

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// proxyCheapProxy is one address of an account.
type proxyCheapProxy struct {
	ID      figure `json:"id"`
	Status  string `json:"status"`
	Country string `json:"countryCode"`
	Auth    struct {
		User     string `json:"username"`
		Password string `json:"password"`
	} `json:"authentication"`
	Connection struct {
		Public  string `json:"publicIp"`
		Connect string `json:"connectIp"`
		HTTP    figure `json:"httpPort"`
		SOCKS   figure `json:"socks5Port"`
	} `json:"connection"`
	Metadata struct {
		Order string `json:"orderId"`
	} `json:"metadata"`
	Created string `json:"createdAt"`
	Expires string `json:"expiresAt"`
}

// proxyCheapList is a list of addresses: {"proxies":[…]} on the live system, a
// bare array in the documentation.
type proxyCheapList []proxyCheapProxy

func (l *proxyCheapList) UnmarshalJSON(b []byte) error {
	var list *[]proxyCheapProxy
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
	} else {
		var outer struct {
			Proxies *[]proxyCheapProxy `json:"proxies"`
		}
		if err := json.Unmarshal(b, &outer); err != nil {
			return err
		}
		list = outer.Proxies
	}
	if list == nil {
		return errShape
	}
	*l = *list
	return nil
}

// proxyCheapDelivery is an order by its addresses. It is Pending while one of them
// is on its way, and Gone when all have ended.
func proxyCheapDelivery(ref string, proxies []proxyCheapProxy) (procurement.Delivery, error) {
	d := procurement.Delivery{Ref: ref, State: procurement.Pending, Quantity: len(proxies)}
	var waiting, over int
	for _, x := range proxies {
		created, err := proxyCheapTime(x.Created)
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
			ip, err := x.address()
			if err != nil {
				return d, err
			}
			if d.ExpiresAt.IsZero() || ip.ExpiresAt.Before(d.ExpiresAt) {
				d.ExpiresAt = ip.ExpiresAt
			}
			d.IPs = append(d.IPs, ip)
		default:
			return d, procurement.Refuse(procurement.Temporary, "the status of an address is not one that is known: "+plain(x.Status))
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

// address is one that can be used.
func (x proxyCheapProxy) address() (procurement.IP, error) {
	unknown := procurement.Refuse(procurement.Temporary, "an address is not of a shape that is known")
	addr, err := netip.ParseAddr(x.Connection.Public)
	if err != nil {
		return procurement.IP{}, unknown
	}
	if _, ok := x.ID.whole(); !ok {
		return procurement.IP{}, unknown
	}
	ip := procurement.IP{ID: string(x.ID), Addr: addr, Host: x.Connection.Connect, User: x.Auth.User, Password: x.Auth.Password,
		Country: x.Country}
	if ip.Host == "" {
		ip.Host = addr.String()
	}
	if _, err := netip.ParseAddr(ip.Host); err != nil {
		return procurement.IP{}, unknown
	}
	var http, socks bool
	ip.HTTPPort, http = portOf(x.Connection.HTTP)
	ip.SOCKSPort, socks = portOf(x.Connection.SOCKS)
	if !http || !socks || ip.HTTPPort == 0 && ip.SOCKSPort == 0 {
		return procurement.IP{}, unknown
	}
	if ip.ExpiresAt, err = proxyCheapTime(x.Expires); err != nil || ip.ExpiresAt.IsZero() {
		return procurement.IP{}, unknown
	}
	return ip, nil
}

// portOf reads a port; 0 when none is told.
func portOf(f figure) (uint16, bool) {
	if f == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(string(f), 10, 16)
	return uint16(n), err == nil
}

// proxyCheapTime reads a time with its zone; zero when none is told.
func proxyCheapTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	return t.UTC(), err
}

// proxyCheapExplain reads a refusal of what was asked for. Its words for an empty
// stock and an empty account are unverified.
func proxyCheapExplain(status int, _ http.Header, body []byte) *procurement.Error {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusPaymentRequired:
	default:
		if status >= 500 && bytes.Contains(bytes.ToLower(body), []byte("password")) {
			return procurement.Refuse(procurement.TimedOut, "status "+strconv.Itoa(status)) // it may repeat a credential
		}
		return nil
	}
	words := sellerWords(body)
	class, low := procurement.Invalid, strings.ToLower(words)
	switch {
	case strings.Contains(low, "stock"):
		class = procurement.OutOfStock
	case status == http.StatusPaymentRequired, strings.Contains(low, "balance"), strings.Contains(low, "insufficient"),
		strings.Contains(low, "funds"):
		class = procurement.InsufficientFunds
	}
	return procurement.Refuse(class, strings.TrimSpace("status "+strconv.Itoa(status)+": "+words))
}
