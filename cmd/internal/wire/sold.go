package wire

import (
	"log/slog"

	"agentproxy/adapters/chain"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain/catalog"
	"agentproxy/domain/recharge"
)

// Sold returns the products that a service with these settings sells, which needs no database.
func Sold(s configfile.Settings) ([]catalog.Product, error) {
	exits, err := embedded.New(embeddedConfig(s), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return s.Catalog.All(exits.Products()), nil
}

// FirstAddresses returns the first n addresses that payments go to, none without an account key. The
// operator compares them with those of the wallet whose key it is.
func FirstAddresses(s configfile.Settings, n int) ([]string, error) {
	if s.Payments.AccountKey == "" {
		return nil, nil
	}
	account, err := chain.NewAccount(s.Payments.AccountKey)
	if err != nil {
		return nil, err
	}
	list := make([]string, n)
	for i := range list {
		if list[i], err = account.Address(recharge.FirstIndex + uint32(i)); err != nil {
			return nil, err
		}
	}
	return list, nil
}
