package proxyseller

import (
	"context"
	"net/netip"

	"agentproxy/domain/procurement"
)

// replacementBody is the body of proxy/replace. Type is why, and no type of proxies.
type replacementBody struct {
	IDs     []string `json:"ids"`
	Type    string   `json:"type"`
	Comment string   `json:"comment"`
}

// complaints are the types of the API by fault; a CUSTOM one requires a comment. The seller makes a ticket of it for
// its support.
var complaints = map[procurement.Fault]replacementBody{
	procurement.WrongPlace:  {Type: "INCORRECT_LOCATION"},
	procurement.Unreachable: {Type: "NOT_WORK"},
	procurement.Listed:      {Type: "CUSTOM", Comment: "The address is on a block list. Please replace it."},
	procurement.Blocked:     {Type: "CUSTOM", Comment: "The sites that it is for block the address. Please replace it."},
	procurement.OtherFault:  {Type: "CUSTOM", Comment: "The address is not usable for us. Please replace it."},
}

// replaceable returns the seller's id of an address of an order.
func (p *addressProvider) replaceable(ctx context.Context, ref string, addr netip.Addr) (string, error) {
	items, err := p.items(ctx, ref)
	if err != nil {
		return "", err
	}
	if len(items) == 0 {
		return "", procurement.Refuse(procurement.NotFound, "no such order")
	}
	for _, i := range items {
		if has, err := netip.ParseAddr(i.Addr); err != nil || has != addr {
			continue
		}
		switch {
		case i.ID == "":
			return "", unexpected(procurement.Temporary)
		case i.Uptime:
			return "", procurement.Refuse(procurement.Unsupported, "the seller does not replace addresses with 100% uptime")
		}
		return i.ID, nil
	}
	return "", procurement.Refuse(procurement.NotFound, "the order does not have this address")
}

// QuoteReplacement costs nothing. The API reports neither the stock nor how many replacements are left of the day.
func (p *addressProvider) QuoteReplacement(ctx context.Context, ref string,
	in procurement.Replacement) (procurement.Quote, error) {
	if _, err := p.replaceable(ctx, ref, in.Addr); err != nil {
		return procurement.Quote{}, err
	}
	return procurement.Quote{Stock: procurement.StockUnknown}, nil
}

// Replace submits a request that the seller's support handles later, at most one a day and address. The order keeps its
// number.
//
// https://docs.proxy-seller.com/proxy-seller/actions-with-proxies/ip-replacement documents neither the refusal of a
// second request nor what became of one. Unverified: that a refusal has an entry in errors[], as all business errors
// have, which then is a Conflict; that the new address has the end of the old one.
func (p *addressProvider) Replace(ctx context.Context, ref string, in procurement.Replacement) error {
	id, err := p.replaceable(ctx, ref, in.Addr)
	if err != nil {
		return err
	}
	body, known := complaints[in.Fault]
	if !known {
		body = complaints[procurement.OtherFault]
	}
	body.IDs = []string{id}
	var data struct {
		OK struct{ IPs []string }
	}
	if err := p.sendOnce(ctx, in.Key, "/proxy/replace", body, &data); err != nil {
		return err
	}
	if len(data.OK.IPs) == 0 { // the one that was asked for would be there
		return unexpected(procurement.Ambiguous)
	}
	return nil
}
