package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/btcsuite/btcd/btcutil/base58"
	"github.com/btcsuite/btcd/btcutil/hdkeychain"
	"github.com/btcsuite/btcd/chaincfg"
	"golang.org/x/crypto/sha3"

	"agentproxy/ports"
)

// hardened is the first index that only a private key can derive.
const hardened = hdkeychain.HardenedKeyStart

// An account key is the third level of m/44'/195'/0'; 195 is TRON. Its text
// begins with these four bytes, which base58 shows as "xpub", and has 78 of them
// before the checksum.
const (
	accountDepth  = 3
	publicVersion = "\x04\x88\xb2\x1e"
	keyBytes      = 78
)

var errPrivateKey = errors.New("this is a private key; who has it can spend the money of every address: " +
	"export the extended public key (xpub) of account m/44'/195'/0' instead, and treat the private one as leaked")

// Account derives receiving addresses from an extended public key. It holds no
// private key. It is safe for concurrent use.
type Account struct {
	fingerprint string
	receiving   *hdkeychain.ExtendedKey // of the addresses that are given out: chain 0
}

var _ ports.Deriver = (*Account)(nil)

// NewAccount reads an account-level extended public key, such as a wallet
// exports it for m/44'/195'/0'. No error repeats the text: it may be a secret
// that was put in the wrong place.
func NewAccount(xpub string) (*Account, error) {
	xpub = strings.TrimSpace(xpub)
	if xpub == "" {
		return nil, errors.New("account key: it is empty; export the extended public key (xpub) of account m/44'/195'/0'")
	}
	key, err := hdkeychain.NewKeyFromString(xpub)
	if err != nil && len(xpub) > 4 && xpub[1:4] == "prv" {
		err = errPrivateKey // a damaged one is as secret
	}
	if err != nil {
		return nil, fmt.Errorf("account key: it is not an extended public key: %w", err)
	}
	if err := checkAccount(key); err != nil {
		return nil, fmt.Errorf("account key: %w", err)
	}
	return newAccount(key)
}

// checkAccount refuses a key that is not at the depth of an account (BIP-44),
// because the operator's wallet would look for the money elsewhere.
func checkAccount(key *hdkeychain.ExtendedKey) error {
	switch depth := key.Depth(); {
	case key.IsPrivate():
		return errPrivateKey
	case string(key.Version()) != publicVersion:
		return fmt.Errorf("its version bytes are %x, want %x: it must begin with xpub; ypub, zpub and tpub are "+
			"of other coins",
			key.Version(), publicVersion)
	case depth == accountDepth+1:
		return fmt.Errorf("it is of depth 4, the key of a chain (m/44'/195'/0'/0); want its parent, the account " +
			"(m/44'/195'/0')")
	case depth != accountDepth:
		return fmt.Errorf("it is of depth %d, want 3: the account (m/44'/195'/0')", depth)
	case key.ChildIndex() < hardened:
		return fmt.Errorf("it is child %d of its parent, not hardened; an account is m/44'/195'/0'", key.ChildIndex())
	}
	return nil
}

// newAccount keeps the chain from which every address is one step away.
func newAccount(key *hdkeychain.ExtendedKey) (*Account, error) {
	receiving, err := key.Derive(0)
	if err != nil {
		return nil, fmt.Errorf("derive the receiving chain: %w", err)
	}
	sum := sha256.Sum256(base58.Decode(key.String())[:keyBytes])
	return &Account{fingerprint: hex.EncodeToString(sum[:8]), receiving: receiving}, nil
}

// DevAccount derives the account m/44'/195'/0' (BIP-32, BIP-44; 195 is TRON in
// SLIP-44) of a seed for the development chain. The private keys on the path
// are erased.
func DevAccount(seed []byte) (*Account, error) {
	key, err := hdkeychain.NewMaster(seed, &chaincfg.MainNetParams)
	for _, index := range []uint32{44, 195, 0} {
		if err != nil {
			break
		}
		parent := key
		key, err = parent.Derive(hardened + index)
		parent.Zero()
	}
	if err != nil {
		return nil, fmt.Errorf("development account: %w", err)
	}
	public, err := key.Neuter()
	if err != nil {
		return nil, fmt.Errorf("development account: %w", err)
	}
	account, err := newAccount(public)
	key.Zero()
	return account, err
}

// Fingerprint returns the first 8 bytes of the SHA-256 hash of the key, in
// hexadecimal.
func (a *Account) Fingerprint() string { return a.fingerprint }

// Address derives m/44'/195'/0'/0/index.
func (a *Account) Address(index uint32) (string, error) {
	if index >= hardened {
		return "", fmt.Errorf("derive address %d: only a private key can derive indexes from 2^31 on", index)
	}
	key, err := a.receiving.Derive(index)
	if err == nil {
		var address string
		if address, err = addressOf(key); err == nil {
			return address, nil
		}
	}
	return "", fmt.Errorf("derive address %d: %w", index, err)
}

// addressOf returns the address of a public key: the last 20 bytes of the
// Keccak-256 hash of its coordinates.
func addressOf(key *hdkeychain.ExtendedKey) (string, error) {
	public, err := key.ECPubKey()
	if err != nil {
		return "", err
	}
	hash := sha3.NewLegacyKeccak256()
	hash.Write(public.SerializeUncompressed()[1:])
	return encodeAddress([20]byte(hash.Sum(nil)[12:])), nil
}

// LogValue names the key and hides it, because all addresses can be derived
// from it.
func (a *Account) LogValue() slog.Value { return slog.StringValue(a.String()) }

// String returns the same as text.
func (a *Account) String() string { return "account " + a.fingerprint }

// GoString returns the same for %#v.
func (a *Account) GoString() string { return a.String() }
