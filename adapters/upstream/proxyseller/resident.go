package proxyseller

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

// trafficProvider sells residential traffic: every order is a package that is taken
// from the account's tariff, with its own cap and credential
// (https://docs.proxy-seller.com/residential-proxy/subaccounts-subusers).
//
// Packages carry no order key, so a lost one is found as the package that was not
// listed before and has the cap of the order. Packages are listed at once, and they
// cost no money but traffic of the tariff.
type trafficProvider struct {
	*account
	host string // of the gateway; empty: that of its profile
	port uint16 // 0: that of its profile
}

var (
	_ ports.Dynamic = (*trafficProvider)(nil)
	_ ports.Lister  = (*trafficProvider)(nil)
)

// Capabilities describes packages: each has its own credential and a cap in bytes, and
// deleting one returns its unused traffic.
func (p *trafficProvider) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Workers: true, Async: true, Cancels: true, Direct: true, CapUnit: 1,
		CounterLag: counterLag}
}

// counterLag is a guess: the delay of the counter is not documented.
const counterLag = 15 * time.Minute

// trafficPackage is a package, or the tariff itself. Its end is not decoded: a package
// ends with the tariff that it is linked to.
type trafficPackage struct {
	Key      string     `json:"package_key"`
	Active   *bool      `json:"is_active"`
	Rotation int        `json:"rotation"`
	Limit    *byteCount `json:"traffic_limit"`
	Used     *byteCount `json:"traffic_usage"`
	Left     *byteCount `json:"traffic_left"`
}

// complete reports whether a package has all fields that are used.
func (p trafficPackage) complete() bool {
	return p.Key != "" && p.Active != nil && p.Limit != nil && p.Used != nil
}

// Balance returns an unknown balance: a package takes traffic of the tariff and no
// money, so a balance would prove nothing about an order.
func (p *trafficProvider) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// tariff returns the account's own package, or nil if it has none.
func (p *trafficProvider) tariff(ctx context.Context) (*trafficPackage, error) {
	var data trafficPackage
	err := p.get(ctx, "/resident/package", &data)
	if procurement.ClassOf(err) == procurement.InsufficientFunds { // "Tarif not found"
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if data.Active == nil || data.Left == nil {
		return nil, unexpected(procurement.Temporary)
	}
	return &data, nil
}

// available returns the most bytes that a new package can have. It is 0 for nil.
func (p *trafficPackage) available() int64 {
	if p == nil || !*p.Active {
		return 0
	}
	return max(int64(*p.Left)-2, 0) // "less than traffic_left - 1"
}

// Offers returns one offer, which is for all places.
func (p *trafficProvider) Offers(ctx context.Context) ([]procurement.Offer, error) {
	tariff, err := p.tariff(ctx)
	if err != nil {
		return nil, err
	}
	o := procurement.Offer{SKU: p.section, Type: session.Dynamic, Name: "Residential traffic", Stock: procurement.StockYes}
	if tariff.available() == 0 {
		o.Stock = procurement.StockNo
	}
	return []procurement.Offer{o}, nil
}

// check fails for an intent that cannot be ordered.
func (p *trafficProvider) check(in procurement.Intent) error {
	switch {
	case in.Type != session.Dynamic:
		return procurement.Refuse(procurement.Unsupported, "this provider sells traffic")
	case in.SKU != "" && in.SKU != p.section:
		return procurement.Refuse(procurement.Invalid, "this provider sells "+p.section)
	case in.Bytes < 1:
		return procurement.Refuse(procurement.Invalid, "no traffic")
	}
	return p.checkPlace(in.Location)
}

// Quote returns a cost of 0, because the tariff is paid in advance. It fails with
// InsufficientFunds if the tariff has too little traffic left.
func (p *trafficProvider) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	if err := p.check(in); err != nil {
		return procurement.Quote{}, err
	}
	tariff, err := p.tariff(ctx)
	if err != nil {
		return procurement.Quote{}, err
	}
	if tariff.available() < in.Bytes {
		return procurement.Quote{}, procurement.Refuse(procurement.InsufficientFunds, "the residential tariff has too "+
			"little traffic left")
	}
	return procurement.Quote{Stock: procurement.StockYes}, nil
}

// Order creates a package. Its rotation is 0, because sessions are parameters of the
// login; that a login without a session then rotates with every request is
// unverified.
func (p *trafficProvider) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	if err := p.check(in); err != nil {
		return procurement.Delivery{}, err
	}
	var made trafficPackage
	body := map[string]any{"is_link_date": true, "rotation": 0, "traffic_limit": strconv.FormatInt(in.Bytes, 10)}
	if err := p.spend(ctx, in.Key, "/residentsubuser/create", body, &made); err != nil {
		return procurement.Delivery{}, err
	}
	if !made.complete() {
		return procurement.Delivery{}, unexpected(procurement.Ambiguous)
	}
	d := procurement.Delivery{Ref: made.Key, State: procurement.Pending, SKU: p.section, Location: in.Location,
		Quantity: 1}
	if access, err := p.access(ctx, made); err == nil {
		d.State, d.Access = procurement.Live, access
	}
	return d, nil // Read gets a credential that is missing here
}

// proxyList is a list of a package, which has a credential of the gateway.
type proxyList struct {
	ID              int64
	Login, Password string
}

// access returns the credential of a package, which is that of its first list. A new
// package has no list until one is created. Because writes are slow, existing lists are
// read first. That a repeated PUT returns the same list follows from the semantics of
// PUT.
func (p *trafficProvider) access(ctx context.Context, k trafficPackage) (procurement.Access, error) {
	var lists []proxyList
	if p.get(ctx, "/residentsubuser/lists?package_key="+url.QueryEscape(k.Key), &lists) != nil {
		lists = nil // unverified: the shape of an empty answer
	}
	lists = slices.DeleteFunc(lists, func(l proxyList) bool { return l.Login == "" || l.Password == "" })
	if len(lists) == 0 {
		var made proxyList
		if err := p.change(ctx, http.MethodPut, "/residentsubuser/list/tools", map[string]string{"package_key": k.Key},
			&made); err != nil {
			return procurement.Access{}, err
		}
		lists = append(lists, made)
	}
	first := slices.MinFunc(lists, func(a, b proxyList) int { return cmp.Compare(a.ID, b.ID) })
	if first.Login == "" || first.Password == "" {
		return procurement.Access{}, unexpected(procurement.Temporary)
	}
	return procurement.Access{User: first.Login, Password: first.Password, CapBytes: int64(*k.Limit)}, nil
}

// packages returns all packages.
func (p *trafficProvider) packages(ctx context.Context) ([]trafficPackage, error) {
	var data *[]trafficPackage
	if err := p.get(ctx, "/residentsubuser/packages", &data); err != nil {
		return nil, err
	}
	if data == nil || slices.ContainsFunc(*data, func(k trafficPackage) bool { return !k.complete() }) {
		return nil, unexpected(procurement.Temporary)
	}
	return *data, nil
}

// packageOf returns the package of a ref. It fails with NotFound if there is none.
func (p *trafficProvider) packageOf(ctx context.Context, ref string) (trafficPackage, error) {
	list, err := p.packages(ctx)
	if err != nil {
		return trafficPackage{}, err
	}
	for _, k := range list {
		if k.Key == ref {
			return k, nil
		}
	}
	return trafficPackage{}, procurement.Refuse(procurement.NotFound, "no such package")
}

// capTolerance is the difference in bytes at which a cap still matches an order. No
// rounding is documented, but an order that is not recognised would be lost.
const capTolerance = 1 << 20

// Find returns the packages with the cap of the intent. They are Pending, because only
// Read returns the credential.
func (p *trafficProvider) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	if in.Type != session.Dynamic {
		return nil, nil
	}
	list, err := p.packages(ctx)
	if err != nil {
		return nil, err
	}
	var found []procurement.Delivery
	for _, k := range list {
		if off := int64(*k.Limit) - in.Bytes; off <= capTolerance && off >= -capTolerance {
			found = append(found, procurement.Delivery{Ref: k.Key, State: procurement.Pending, SKU: p.section})
		}
	}
	return found, nil
}

// List returns all packages.
func (p *trafficProvider) List(ctx context.Context) ([]procurement.Delivery, error) {
	packages, err := p.packages(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]procurement.Delivery, len(packages))
	for i, k := range packages {
		list[i] = procurement.Delivery{Ref: k.Key, State: procurement.Live, SKU: p.section}
	}
	return list, nil
}

// Read returns a package with its credential.
func (p *trafficProvider) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	k, err := p.packageOf(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	access, err := p.access(ctx, k)
	if err != nil {
		return procurement.Delivery{}, err
	}
	return procurement.Delivery{Ref: ref, State: procurement.Live, SKU: p.section, Quantity: 1, Access: access}, nil
}

// Cancel deletes a package, which returns its unused traffic to the tariff.
func (p *trafficProvider) Cancel(ctx context.Context, ref string) error {
	var answer json.RawMessage
	if err := p.change(ctx, http.MethodDelete, "/residentsubuser/delete", map[string]string{"package_key": ref},
		&answer); err != nil {
		if procurement.ClassOf(err) == procurement.NotFound {
			return nil
		}
		return err
	}
	switch deletionStatus(answer) {
	case "delete", "not-found":
		return nil
	}
	return unexpected(procurement.Temporary)
}

// deletionStatus returns the status of a deletion. The answer is a word, or JSON with a
// status, which may be inside a text.
func deletionStatus(answer json.RawMessage) string {
	var word string
	if json.Unmarshal(answer, &word) == nil {
		answer = json.RawMessage(word)
	}
	var data struct{ Status string }
	if json.Unmarshal(answer, &data) == nil {
		return data.Status
	}
	return word
}

// Disable switches a package off. It keeps its counter and its traffic. The whole
// package is written: whether the seller keeps fields that are left out is
// unverified.
func (p *trafficProvider) Disable(ctx context.Context, ref string) error {
	k, err := p.packageOf(ctx, ref)
	if err != nil {
		return err
	}
	body := map[string]any{"package_key": k.Key, "rotation": k.Rotation, "is_active": false, "is_link_date": true,
		"traffic_limit": strconv.FormatInt(int64(*k.Limit), 10)}
	return p.change(ctx, http.MethodPost, "/residentsubuser/update", body, nil)
}

// Usage returns the counter of a package. Its delay is not documented.
func (p *trafficProvider) Usage(ctx context.Context, ref string) (procurement.Usage, error) {
	at := p.now().UTC().Truncate(time.Microsecond)
	k, err := p.packageOf(ctx, ref)
	if procurement.ClassOf(err) == procurement.NotFound {
		return procurement.Usage{AsOf: at, Gone: true}, nil
	}
	if err != nil {
		return procurement.Usage{}, err
	}
	return procurement.Usage{Bytes: int64(*k.Used), AsOf: at}, nil
}
