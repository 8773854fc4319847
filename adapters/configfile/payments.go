package configfile

import (
	"net/netip"
	"net/url"
	"time"

	"agentproxy/domain"
)

// PaymentConfig holds the settings of payments: they come from TRON if there is
// an account key, else from the development chain.
type PaymentConfig struct {
	// Extended public key of the TRON account `m/44'/195'/0'` that payment addresses are derived from; never a
	// private key. Without it payments come from the development chain in development mode, and are off otherwise.
	TronXPub string `yaml:"tron_xpub" env:"AGENTPROXY_TRON_XPUB"`
	// `mainnet`, or `shasta` or `nile` for tests.
	TronNetwork string `yaml:"tron_network" env:"AGENTPROXY_TRON_NETWORK" default:"mainnet"`
	// `trongrid`, or `jsonrpc`: a java-tron node of your own, Chainstack, QuickNode or GetBlock, of which nothing but
	// `POST /jsonrpc` is used.
	TronSource string `yaml:"tron_source" env:"AGENTPROXY_TRON_SOURCE" default:"trongrid"`
	// Base URL of the source, without `/jsonrpc`; https, but for loopback addresses. Required with `jsonrpc`.
	TronAPIURL string `yaml:"tron_api_url" env:"AGENTPROXY_TRON_API_URL" default:"TronGrid of the network"`
	// Key of the TronGrid account.
	TronAPIKey string `yaml:"-" env:"AGENTPROXY_TRON_API_KEY"`
	// Base URL of a second node that serves `/jsonrpc`, without it. A transfer above `tron_witness_above` is credited
	// only when this node has it as final too, so that one source that lies credits no more than that.
	TronWitnessURL string `yaml:"tron_witness_url" env:"AGENTPROXY_TRON_WITNESS_URL"`
	// Amount in USD above which the second node is asked.
	TronWitnessAbove string `yaml:"tron_witness_above" env:"AGENTPROXY_TRON_WITNESS_ABOVE" default:"1000.00"`
	// Contract of the token; on mainnet USDT alone is accepted.
	TronContract string `yaml:"tron_contract" env:"AGENTPROXY_TRON_CONTRACT" default:"USDT of the network"`
	// Milliseconds between blocks of the development chain, 10 to 60000; a payment is final after 5 blocks.
	DevchainBlock *int `yaml:"devchain_block_ms" env:"AGENTPROXY_DEVCHAIN_BLOCK_MS" default:"1000"`
}

// PaymentSettings is a PaymentConfig that was checked.
type PaymentSettings struct {
	AccountKey    string // extended public key; empty on the development chain
	Off           bool   // neither an account key nor development mode: recharges are refused
	Network       string // such as tron-mainnet
	BaseURL       string
	JSONRPC       bool // the source is a plain node
	APIKey        Secret
	Contract      string
	WitnessURL    string       // empty: there is no second node
	WitnessAbove  domain.Money // transfers above it need the second node
	DevchainBlock time.Duration
}

// tronNetwork is a public network of TRON.
type tronNetwork struct{ url, contract string }

// Hosts and USDT contracts (developers.tron.network, networks and TRC-20). Testnets have no one USDT; these
// are the ones that the official examples use.
var tronNetworks = map[string]tronNetwork{
	"mainnet": {"https://api.trongrid.io", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
	"shasta":  {"https://api.shasta.trongrid.io", "TG3XXyExBkPp9nzdajDZsozEu4BkaSJozs"},
	"nile":    {"https://nile.trongrid.io", "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"},
}

const devchainBlock = time.Second

// witnessAbove is the default of AGENTPROXY_TRON_WITNESS_ABOVE: 1,000 USD.
const witnessAbove = 1000 * domain.Dollar

// Bounds of AGENTPROXY_DEVCHAIN_BLOCK_MS.
const minBlockMS, maxBlockMS = 10, 60_000

// payments checks where payments come from.
func (c *check) payments(p PaymentConfig, dev bool) PaymentSettings {
	if p.TronXPub == "" {
		s := c.devchain(p)
		s.Off = !dev
		return s
	}
	s := PaymentSettings{AccountKey: p.TronXPub, APIKey: Secret(p.TronAPIKey), DevchainBlock: devchainBlock}
	if err := c.rules.AccountKey(p.TronXPub); err != nil {
		c.fault("AGENTPROXY_TRON_XPUB", "%v", err)
	}
	if p.DevchainBlock != nil {
		c.fault("AGENTPROXY_DEVCHAIN_BLOCK_MS",
			"must not be set together with AGENTPROXY_TRON_XPUB: the money of the development chain is not real")
	}
	if p.TronNetwork == "" {
		p.TronNetwork = "mainnet"
	}
	network, known := tronNetworks[p.TronNetwork]
	if !known {
		c.fault("AGENTPROXY_TRON_NETWORK", "must be one of mainnet, shasta, nile")
		return s
	}
	s.Network, s.BaseURL, s.Contract = "tron-"+p.TronNetwork, network.url, network.contract
	if p.TronContract != "" {
		s.Contract = p.TronContract
	}
	if p.TronNetwork == "mainnet" && s.Contract != network.contract {
		c.fault("AGENTPROXY_TRON_CONTRACT", "must be %s on mainnet: that is USDT", network.contract)
	}
	if !c.rules.TronAddress(s.Contract) {
		c.fault("AGENTPROXY_TRON_CONTRACT", "is not a TRON address")
	}
	if p.TronAPIURL != "" {
		s.BaseURL = c.paymentSource("AGENTPROXY_TRON_API_URL", p.TronAPIURL)
	}
	c.witness(p, &s)
	switch p.TronSource {
	case "", "trongrid":
	case "jsonrpc":
		if s.JSONRPC = true; p.TronAPIURL == "" {
			c.fault("AGENTPROXY_TRON_API_URL", "is required with the source jsonrpc: the URL of the node, without /jsonrpc")
		}
	default:
		c.fault("AGENTPROXY_TRON_SOURCE", "must be one of trongrid, jsonrpc")
	}
	return s
}

// Warnings returns what keeps payments from working as they should, and is no
// fault. It is for the start: a file may be checked where payments are not set.
func (s PaymentSettings) Warnings() (list []Fault) {
	if s.Off {
		list = append(list, Fault{Path: "AGENTPROXY_TRON_XPUB", Text: "is not set, so recharges are refused; set the " +
			"account's public key to be paid in USDT"})
	}
	if s.Network == "tron-mainnet" && !s.JSONRPC && s.APIKey == "" {
		list = append(list, Fault{Path: "AGENTPROXY_TRON_API_KEY", Text: "is not set: TronGrid limits calls without a key " +
			"so much that payments may be seen late; get a free key at trongrid.io"})
	}
	return list
}

// paymentSource checks the base URL of the payment source. Over http anyone on
// the way could answer that money has arrived.
func (c *check) paymentSource(name, text string) string {
	base := c.baseURL(name, text)
	if u, err := url.Parse(text); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		c.fault(name, "must be https: anyone who can change an answer on the way credits money that was never paid; "+
			"http is accepted for a loopback address alone")
	}
	return base
}

// witness checks the second node, which has to be another than the first.
func (c *check) witness(p PaymentConfig, s *PaymentSettings) {
	const amount, address = "AGENTPROXY_TRON_WITNESS_ABOVE", "AGENTPROXY_TRON_WITNESS_URL"
	if p.TronWitnessURL == "" {
		if p.TronWitnessAbove != "" {
			c.fault(amount, "has no effect without %s, the second node", address)
		}
		return
	}
	s.WitnessURL, s.WitnessAbove = c.paymentSource(address, p.TronWitnessURL), witnessAbove
	one, errOne := url.Parse(s.BaseURL)
	two, errTwo := url.Parse(p.TronWitnessURL)
	if errOne == nil && errTwo == nil && one.Host == two.Host {
		c.fault(address, "must be another node than the source of payments: one that lies would confirm itself")
	}
	if p.TronWitnessAbove != "" {
		var err error
		if s.WitnessAbove, err = domain.ParseMoney(p.TronWitnessAbove); err != nil || s.WitnessAbove < 0 {
			c.fault(amount, "must be an amount in USD, such as 1000.00")
		}
	}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// devchain checks the settings of the development chain.
func (c *check) devchain(p PaymentConfig) PaymentSettings {
	for name, value := range map[string]string{"AGENTPROXY_TRON_NETWORK": p.TronNetwork,
		"AGENTPROXY_TRON_API_URL": p.TronAPIURL, "AGENTPROXY_TRON_SOURCE": p.TronSource,
		"AGENTPROXY_TRON_API_KEY": p.TronAPIKey, "AGENTPROXY_TRON_CONTRACT": p.TronContract,
		"AGENTPROXY_TRON_WITNESS_URL": p.TronWitnessURL, "AGENTPROXY_TRON_WITNESS_ABOVE": p.TronWitnessAbove} {
		if value != "" {
			c.fault(name,
				"has no effect without AGENTPROXY_TRON_XPUB, the account's public key that addresses are derived from; "+
					"set that too")
		}
	}
	s := PaymentSettings{DevchainBlock: devchainBlock}
	if p.DevchainBlock != nil {
		if ms := *p.DevchainBlock; ms < minBlockMS || ms > maxBlockMS {
			c.fault("AGENTPROXY_DEVCHAIN_BLOCK_MS", "must be %d to %d", minBlockMS, maxBlockMS)
		}
		s.DevchainBlock = time.Duration(*p.DevchainBlock) * time.Millisecond
	}
	return s
}
