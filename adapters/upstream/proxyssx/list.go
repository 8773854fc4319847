package proxyssx

import (
	"context"
	"net/http"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
)

// Find returns the pool keys whose label is the key of the intent.
func (p *Provider) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	all, err := p.keys(ctx)
	if err != nil {
		return nil, err
	}
	var found []procurement.Delivery
	for _, k := range all {
		if k.ID == "" || k.Label == "" {
			return nil, errShape // such a list does not prove that the key is absent
		}
		if k.Label != in.Key {
			continue
		}
		d, err := p.delivery(k)
		if err != nil {
			return nil, err
		}
		found = append(found, d)
	}
	return found, nil
}

// keys returns all pool keys of the account.
func (p *Provider) keys(ctx context.Context) ([]poolKey, error) {
	var all *[]poolKey
	if err := p.api.Call(ctx, rest.Safely, http.MethodGet, "/reseller/pool-keys", nil, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, errShape
	}
	return *all, nil
}

// List returns all pool keys that have not expired, also those that a person made.
func (p *Provider) List(ctx context.Context) ([]procurement.Delivery, error) {
	all, err := p.keys(ctx)
	if err != nil {
		return nil, err
	}
	var list []procurement.Delivery
	for _, k := range all {
		if !idForm.MatchString(k.ID) {
			return nil, errShape
		}
		if k.IsExpired {
			continue
		}
		d := procurement.Delivery{Ref: k.ID, Label: k.Label, State: procurement.Live}
		if k.CreatedAt > 0 {
			d.CreatedAt = time.UnixMilli(k.CreatedAt).UTC()
		}
		list = append(list, d)
	}
	return list, nil
}
