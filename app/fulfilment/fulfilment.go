// Package fulfilment seals and opens what providers delivered for sessions.
package fulfilment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"agentproxy/app/catalogs"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Service opens what providers delivered for sessions: the upstream proxies
// and the credentials for them, which are stored encrypted.
type Service struct {
	store   ports.Unit[repos]
	secrets ports.Secrets
	catalog *catalogs.Catalog
	log     *slog.Logger
}

// New returns a Service.
func New(store ports.Store, secrets ports.Secrets, catalog *catalogs.Catalog, log *slog.Logger) *Service {
	return &Service{store: narrow(store), secrets: secrets, catalog: catalog, log: log}
}

// Delivered is the part of a delivery that is stored encrypted, as JSON.
type Delivered struct {
	Access procurement.Access
	IPs    []procurement.IP
	// Direct proxies are for the agent and not for the gateway. It is decided on
	// delivery, so that no change of the catalogue changes a session.
	Direct bool
}

// Seal returns a delivery of an order as it is stored with it.
func (f *Service) Seal(o procurement.Order, d procurement.Delivery, direct bool) ([]byte, error) {
	plain, err := json.Marshal(Delivered{d.Access, d.IPs, direct})
	if err != nil {
		return nil, fmt.Errorf("seal the delivery of %s: %w", o.ID, err)
	}
	return f.secrets.Seal(plain, "order/"+o.ID), nil
}

// Open returns what Seal stored with an order.
func (f *Service) Open(o procurement.Order) (d Delivered, err error) {
	plain, err := f.secrets.Open(o.SealedDelivery, "order/"+o.ID)
	if err == nil {
		err = json.Unmarshal(plain, &d)
	}
	if err != nil {
		return d, fmt.Errorf("open the delivery of %s: %w", o.ID, err)
	}
	return d, nil
}

// deliveredTo returns what was delivered for a session. It returns ports.ErrProvider if
// nothing was bought.
func (f *Service) deliveredTo(ctx context.Context, s session.Session) (d Delivered, err error) {
	var orders []procurement.Order
	err = f.store.Read(ctx, func(ctx context.Context, tx repos) (err error) {
		orders, err = tx.Orders().Of(ctx, s.ID)
		return err
	})
	if err != nil {
		return d, err
	}
	o, ok := Purchased(orders)
	if !ok {
		return d, ports.ErrProvider.Msgf("nothing was bought for this session")
	}
	return f.Open(o)
}

// Upstreams returns one upstream proxy per exit of an active session, or nil if
// its exits are addresses of this host. It returns session.ErrNotFound for a
// direct session, which the gateway does not serve.
func (f *Service) Upstreams(ctx context.Context, s session.Session) ([]procurement.Endpoint, error) {
	p, ok := f.catalog.Provider(s.Provider)
	if !ok {
		return nil, ports.ErrProvider.Msgf("the provider of this session is not configured any more")
	}
	caps := p.Capabilities()
	if !caps.ViaUpstream {
		return nil, nil
	}
	var d Delivered
	if !caps.InProcess {
		var err error
		if d, err = f.deliveredTo(ctx, s); err != nil {
			return nil, err
		}
	}
	if d.Direct {
		return nil, session.ErrNotFound
	}
	return endpoints(p, s, d, "")
}

// DirectProxy is an upstream proxy that the agent itself connects to.
type DirectProxy struct {
	HTTP, SOCKS5 procurement.Endpoint // the zero Endpoint if the provider does not offer the protocol
}

// Direct returns the proxies of an active direct session, one per exit. They are
// nil for any other session, and empty if the provider cannot resolve them at
// the moment.
func (f *Service) Direct(ctx context.Context, s session.Session) ([]DirectProxy, error) {
	if s.Status != session.Active {
		return nil, nil
	}
	p, known := f.catalog.Provider(s.Provider)
	if known && !p.Capabilities().Direct {
		return nil, nil
	}
	d, err := f.deliveredTo(ctx, s)
	if errors.Is(err, ports.ErrProvider) {
		return nil, nil // the provider has no orders
	}
	if err != nil || !d.Direct {
		return nil, err
	}
	if !known {
		return []DirectProxy{}, nil
	}
	byHTTP, err := endpoints(p, s, d, session.HTTP)
	bySOCKS, err2 := endpoints(p, s, d, session.SOCKS5)
	if err := cmp.Or(err, err2); err != nil {
		f.log.Warn("a direct session has no address", "session_id", s.ID, "provider", s.Provider, "err", err)
		return []DirectProxy{}, nil
	}
	list := make([]DirectProxy, len(byHTTP))
	for i := range byHTTP {
		if byHTTP[i].Protocol == session.HTTP {
			list[i].HTTP = byHTTP[i]
		}
		if bySOCKS[i].Protocol == session.SOCKS5 {
			list[i].SOCKS5 = bySOCKS[i]
		}
	}
	return list, nil
}

// endpoints returns one upstream proxy per exit of a session for a protocol; of
// an empty one the protocol that the provider prefers.
func endpoints(p ports.Provider, s session.Session, d Delivered,
	proto session.Protocol) ([]procurement.Endpoint, error) {
	if s.Type == session.Dynamic {
		dynamic, ok := p.(ports.Dynamic)
		if !ok {
			return nil, ports.ErrProvider
		}
		e, err := dynamic.Endpoint(d.Access, procurement.Target{Location: s.Location,
			Token: procurement.Token(s.ID, s.Rotation.Turn()), Turn: s.Rotation.Turn(), Protocol: proto})
		if err != nil {
			return nil, fmt.Errorf("the endpoint of %s: %w", s.ID, err)
		}
		return []procurement.Endpoint{e}, nil
	}
	list := make([]procurement.Endpoint, len(s.Exits))
	for i, exit := range s.Exits {
		if exit.Ended {
			continue
		}
		for _, ip := range d.IPs {
			if ip.Addr == exit.IP {
				list[i], _ = ip.Endpoint(proto)
			}
		}
		if list[i].Host == "" {
			return nil, ports.ErrProvider.Msgf("the upstream returned no proxy for an address of this session")
		}
	}
	return list, nil
}

// Purchased returns the confirmed purchase among the orders of a session; false
// if there is none.
func Purchased(orders []procurement.Order) (procurement.Order, bool) {
	for _, o := range orders {
		if o.Kind == procurement.Purchase && o.Status == procurement.Confirmed {
			return o, true
		}
	}
	return procurement.Order{}, false
}
