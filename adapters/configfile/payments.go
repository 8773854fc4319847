package configfile

import (
	"time"

	"agentproxy/adapters/chain"
)

// PaymentConfig says where money comes from: from TRON when there is an account
// key, else from the development chain.
type PaymentConfig struct {
	TronXPub      string `yaml:"tron_xpub" env:"AGENTPROXY_TRON_XPUB"`
	TronNetwork   string `yaml:"tron_network" env:"AGENTPROXY_TRON_NETWORK"`
	TronAPIURL    string `yaml:"tron_api_url" env:"AGENTPROXY_TRON_API_URL"`
	TronAPIKey    string `yaml:"-" env:"AGENTPROXY_TRON_API_KEY"` // never from the file
	TronContract  string `yaml:"tron_contract" env:"AGENTPROXY_TRON_CONTRACT"`
	DevchainBlock *int   `yaml:"devchain_block_ms" env:"AGENTPROXY_DEVCHAIN_BLOCK_MS"`
}

// PaymentSettings is a PaymentConfig that was checked. Account is nil on the
// development chain.
type PaymentSettings struct {
	Account       *chain.Account
	Tron          chain.TronConfig
	DevchainBlock time.Duration
}

// tronNetwork is what is known of a network of TRON.
type tronNetwork struct{ url, contract string }

// Hosts and USDT contracts (developers.tron.network, networks and TRC-20). Testnets have no one USDT; these
// are the ones that the official examples use.
var tronNetworks = map[string]tronNetwork{
	"mainnet": {"https://api.trongrid.io", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
	"shasta":  {"https://api.shasta.trongrid.io", "TG3XXyExBkPp9nzdajDZsozEu4BkaSJozs"},
	"nile":    {"https://nile.trongrid.io", "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"},
}

const devchainBlock = time.Second

// Bounds of AGENTPROXY_DEVCHAIN_BLOCK_MS.
const minBlockMS, maxBlockMS = 10, 60_000

// payments checks where money comes from.
func (c *check) payments(p PaymentConfig) (s PaymentSettings) {
	s.DevchainBlock = devchainBlock
	if p.TronXPub == "" {
		for name, value := range map[string]string{"AGENTPROXY_TRON_NETWORK": p.TronNetwork, "AGENTPROXY_TRON_API_URL": p.TronAPIURL,
			"AGENTPROXY_TRON_API_KEY": p.TronAPIKey, "AGENTPROXY_TRON_CONTRACT": p.TronContract} {
			if value != "" {
				c.fault(name, "needs AGENTPROXY_TRON_XPUB, the account's public key that addresses are derived from")
			}
		}
		if p.DevchainBlock != nil {
			if ms := *p.DevchainBlock; ms < minBlockMS || ms > maxBlockMS {
				c.fault("AGENTPROXY_DEVCHAIN_BLOCK_MS", "must be %d to %d", minBlockMS, maxBlockMS)
			}
			s.DevchainBlock = time.Duration(*p.DevchainBlock) * time.Millisecond
		}
		return s
	}
	var err error
	if s.Account, err = chain.NewAccount(p.TronXPub); err != nil {
		c.fault("AGENTPROXY_TRON_XPUB", "%v", err)
	}
	if p.DevchainBlock != nil {
		c.fault("AGENTPROXY_DEVCHAIN_BLOCK_MS", "the development chain cannot run beside AGENTPROXY_TRON_XPUB: its money is not real")
	}
	if p.TronNetwork == "" {
		p.TronNetwork = "mainnet"
	}
	network, known := tronNetworks[p.TronNetwork]
	if !known {
		c.fault("AGENTPROXY_TRON_NETWORK", "must be one of mainnet, shasta, nile")
		return s
	}
	if p.TronContract == "" {
		p.TronContract = network.contract
	}
	if p.TronNetwork == "mainnet" && p.TronContract != network.contract {
		c.fault("AGENTPROXY_TRON_CONTRACT", "on mainnet USDT is %s and nothing else", network.contract)
	}
	if !chain.ValidAddress(p.TronContract) {
		c.fault("AGENTPROXY_TRON_CONTRACT", "is no TRON address")
	}
	url := network.url
	if p.TronAPIURL != "" {
		url = c.baseURL("AGENTPROXY_TRON_API_URL", p.TronAPIURL)
	}
	s.Tron = chain.TronConfig{Network: "tron-" + p.TronNetwork, BaseURL: url, APIKey: p.TronAPIKey, Contract: p.TronContract}
	return s
}
