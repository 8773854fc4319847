package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// proxySellerResident sells residential traffic: every order is a package that is
// cut out of the account's tariff, with a cap and a credential of its own
// (https://docs.proxy-seller.com/residential-proxy/subaccounts-subusers).
//
// A package has no name that we choose, so a lost one is found as the package that
// was not listed before and has the cap that was asked for. Packages are listed as
// soon as they are made, and they cost no money but traffic of the tariff.
type proxySellerResident struct {
	*proxySeller
	host string // of the gateway; empty: the Dutch one
	port uint16 // 0: the gateway's
}

var _ ports.Dynamic = (*proxySellerResident)(nil)

// Capabilities: a package has its own credential and a cap in bytes, and deleting
// it gives the rest back.
func (p *proxySellerResident) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Async: true, Cancels: true, Direct: true, CapUnit: 1}
}

// proxySellerPackage is one package, or the tariff itself. The end is an object in
// a package and a text in the tariff, and nobody reads it: a package ends with the
// tariff that it is linked to.
type proxySellerPackage struct {
	Key      string            `json:"package_key"`
	Active   *bool             `json:"is_active"`
	Rotation int               `json:"rotation"`
	Limit    *proxySellerBytes `json:"traffic_limit"`
	Used     *proxySellerBytes `json:"traffic_usage"`
	Left     *proxySellerBytes `json:"traffic_left"`
}

// known reports whether a package has what this adapter lives by.
func (k proxySellerPackage) known() bool {
	return k.Key != "" && k.Active != nil && k.Limit != nil && k.Used != nil
}

// Balance is not told: a package takes traffic of the tariff and no money, so
// money could prove nothing about it. What is left of the tariff is among the
// offers.
func (p *proxySellerResident) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// tariff is the account's own package; nil when there is none.
func (p *proxySellerResident) tariff(ctx context.Context) (*proxySellerPackage, error) {
	var data proxySellerPackage
	err := p.get(ctx, "/resident/package", &data)
	if procurement.ClassOf(err) == procurement.InsufficientFunds { // "Tarif not found"
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if data.Active == nil || data.Left == nil {
		return nil, proxySellerOdd(procurement.Temporary)
	}
	return &data, nil
}

// left is how many bytes a package may have at most.
func (k *proxySellerPackage) left() int64 {
	if k == nil || !*k.Active {
		return 0
	}
	return max(int64(*k.Left)-2, 0) // "less than traffic_left - 1"
}

// Offers is the one thing that is sold, everywhere.
func (p *proxySellerResident) Offers(ctx context.Context) ([]procurement.Offer, error) {
	tariff, err := p.tariff(ctx)
	if err != nil {
		return nil, err
	}
	o := procurement.Offer{SKU: p.section, Type: session.Dynamic, Name: "Residential traffic", Stock: procurement.StockYes}
	if tariff.left() == 0 {
		o.Stock = procurement.StockNo
	}
	return []procurement.Offer{o}, nil
}

// fits refuses what is not sold here.
func (p *proxySellerResident) fits(in procurement.Intent) error {
	switch {
	case in.Type != session.Dynamic:
		return procurement.Refuse(procurement.Unsupported, "this provider sells traffic")
	case in.SKU != "" && in.SKU != p.section:
		return procurement.Refuse(procurement.Invalid, "this provider sells "+p.section)
	case in.Bytes < 1:
		return procurement.Refuse(procurement.Invalid, "no traffic")
	}
	return p.place(in.Location)
}

// Quote compares what is asked for with what is left of the tariff. It is paid
// already, so there is no cost.
func (p *proxySellerResident) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	if err := p.fits(in); err != nil {
		return procurement.Quote{}, err
	}
	tariff, err := p.tariff(ctx)
	if err != nil {
		return procurement.Quote{}, err
	}
	if tariff.left() < in.Bytes {
		return procurement.Quote{}, procurement.Refuse(procurement.InsufficientFunds, "the residential tariff has not so much traffic left")
	}
	return procurement.Quote{Stock: procurement.StockYes}, nil
}

// Order cuts a package out of the tariff. Sessions ride in the login, so the
// package itself rotates with every request; that this is what rotation 0 means
// for logins without a session is unverified.
func (p *proxySellerResident) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	if err := p.fits(in); err != nil {
		return procurement.Delivery{}, err
	}
	var made proxySellerPackage
	body := map[string]any{"is_link_date": true, "rotation": 0, "traffic_limit": strconv.FormatInt(in.Bytes, 10)}
	if err := p.spend(ctx, in.Key, "/residentsubuser/create", body, &made); err != nil {
		return procurement.Delivery{}, err
	}
	if !made.known() {
		return procurement.Delivery{}, proxySellerOdd(procurement.Ambiguous)
	}
	d := procurement.Delivery{Ref: made.Key, State: procurement.Pending, SKU: p.section, Location: in.Location, Quantity: 1}
	if access, err := p.access(ctx, made); err == nil {
		d.State, d.Access = procurement.Live, access
	}
	return d, nil // without a credential yet, Read gets it
}

// proxySellerList is one list of a package: a credential of the gateway.
type proxySellerList struct {
	ID              int64
	Login, Password string
}

// access gets the credential of a package, which is that of its first list. A new
// package has none until a call makes it; that call is a write, and writes are
// slow, so the lists are asked first. That a repeated PUT would answer the same
// list is taken from what PUT means.
func (p *proxySellerResident) access(ctx context.Context, k proxySellerPackage) (procurement.Access, error) {
	var lists []proxySellerList
	if p.get(ctx, "/residentsubuser/lists?package_key="+url.QueryEscape(k.Key), &lists) != nil {
		lists = nil // unverified: the shape of an empty answer
	}
	lists = slices.DeleteFunc(lists, func(l proxySellerList) bool { return l.Login == "" || l.Password == "" })
	if len(lists) == 0 {
		var made proxySellerList
		if err := p.change(ctx, safely, http.MethodPut, "/residentsubuser/list/tools", map[string]string{"package_key": k.Key}, &made); err != nil {
			return procurement.Access{}, err
		}
		lists = append(lists, made)
	}
	first := slices.MinFunc(lists, func(a, b proxySellerList) int { return cmp.Compare(a.ID, b.ID) })
	if first.Login == "" || first.Password == "" {
		return procurement.Access{}, proxySellerOdd(procurement.Temporary)
	}
	return procurement.Access{User: first.Login, Password: first.Password, CapBytes: int64(*k.Limit)}, nil
}

// packages lists all of them.
func (p *proxySellerResident) packages(ctx context.Context) ([]proxySellerPackage, error) {
	var data *[]proxySellerPackage
	if err := p.get(ctx, "/residentsubuser/packages", &data); err != nil {
		return nil, err
	}
	if data == nil || slices.ContainsFunc(*data, func(k proxySellerPackage) bool { return !k.known() }) {
		return nil, proxySellerOdd(procurement.Temporary)
	}
	return *data, nil
}

// find is the package of a ref, else NotFound.
func (p *proxySellerResident) find(ctx context.Context, ref string) (proxySellerPackage, error) {
	list, err := p.packages(ctx)
	if err != nil {
		return proxySellerPackage{}, err
	}
	for _, k := range list {
		if k.Key == ref {
			return k, nil
		}
	}
	return proxySellerPackage{}, procurement.Refuse(procurement.NotFound, "no such package")
}

// proxySellerRounding is how far a cap may be from what was asked for. No rounding
// is documented; an order that is not recognised would be lost.
const proxySellerRounding = 1 << 20

// Find lists the packages with the cap of the intent. They are pending as far as
// the list tells: the credential is told by Read.
func (p *proxySellerResident) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	if in.Type != session.Dynamic {
		return nil, nil
	}
	list, err := p.packages(ctx)
	if err != nil {
		return nil, err
	}
	var found []procurement.Delivery
	for _, k := range list {
		if off := int64(*k.Limit) - in.Bytes; off <= proxySellerRounding && off >= -proxySellerRounding {
			found = append(found, procurement.Delivery{Ref: k.Key, State: procurement.Pending, SKU: p.section})
		}
	}
	return found, nil
}

// Read tells a package with its credential.
func (p *proxySellerResident) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	k, err := p.find(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	access, err := p.access(ctx, k)
	if err != nil {
		return procurement.Delivery{}, err
	}
	return procurement.Delivery{Ref: ref, State: procurement.Live, SKU: p.section, Quantity: 1, Access: access}, nil
}

// Cancel deletes a package; the rest of its traffic goes back to the tariff.
func (p *proxySellerResident) Cancel(ctx context.Context, ref string) error {
	var said json.RawMessage
	if err := p.change(ctx, safely, http.MethodDelete, "/residentsubuser/delete", map[string]string{"package_key": ref}, &said); err != nil {
		if procurement.ClassOf(err) == procurement.NotFound {
			return nil
		}
		return err
	}
	switch proxySellerDeleted(said) {
	case "delete", "not-found":
		return nil
	}
	return proxySellerOdd(procurement.Temporary)
}

// proxySellerDeleted is what became of a deletion: the answer is a word, or JSON
// with a status, and that may be inside a text.
func proxySellerDeleted(said json.RawMessage) string {
	var word string
	if json.Unmarshal(said, &word) == nil {
		said = json.RawMessage(word)
	}
	var data struct{ Status string }
	if json.Unmarshal(said, &data) == nil {
		return data.Status
	}
	return word
}

// Disable switches a package off. It keeps its counter and its traffic. The whole
// package is written: whether the seller keeps fields that are left out is
// unverified.
func (p *proxySellerResident) Disable(ctx context.Context, ref string) error {
	k, err := p.find(ctx, ref)
	if err != nil {
		return err
	}
	body := map[string]any{"package_key": k.Key, "rotation": k.Rotation, "is_active": false, "is_link_date": true,
		"traffic_limit": strconv.FormatInt(int64(*k.Limit), 10)}
	return p.change(ctx, safely, http.MethodPost, "/residentsubuser/update", body, nil)
}

// Usage is what the package counted. How late that is, is not documented.
func (p *proxySellerResident) Usage(ctx context.Context, ref string) (procurement.Usage, error) {
	at := p.now().UTC().Truncate(time.Microsecond)
	k, err := p.find(ctx, ref)
	if procurement.ClassOf(err) == procurement.NotFound {
		return procurement.Usage{AsOf: at, Gone: true}, nil
	}
	if err != nil {
		return procurement.Usage{}, err
	}
	return procurement.Usage{Bytes: int64(*k.Used), AsOf: at}, nil
}
