package chain

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/btcsuite/btcd/btcutil/base58"
	"github.com/btcsuite/btcd/btcutil/hdkeychain"
	"github.com/btcsuite/btcd/chaincfg"
)

// The keys of the vectors: the account and its receiving chain.
const (
	testAccount = "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd"
	testChain   = "xpub6EuK4CZWW5urEHdwAVDdDw327danAtccFcrXYvgf1DHrPXRwErt36xStQ2PNhn4hpwzPbzJ8pJVpewgChRnSs59q5Ay61GCfQZKUe71gbLq"
	// The seed of the mnemonic "abandon" eleven times and "about", no passphrase.
	testSeed = "5eb00bbddcf069084889a8ab9155568165f5c453ccb85e70811aaed6f6da5fc1" +
		"9a5ac40b389cd370d086206dec8aa6c43daea6690f20ad3d8d48b2d2ce9e38e4"
)

func account(t *testing.T) *Account {
	t.Helper()
	a, err := NewAccount(testAccount)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAddressesAreThoseOfEveryWallet(t *testing.T) {
	a := account(t)
	want := map[uint32]string{
		5: "TBdYXtwq18cAhi1BA574TrP6tw2G86anu1", 19: "TVVrjiM1MuVzeczUHzSAnmAipW7qAX2gRL", 20: "TQNiYx8GwBCA3C3Gk1jFi2x59dLH2dnqz6",
		100: "TVjTLqXUzMUsHhjAPaWP3TpA7vvz2MuvU1", 1000: "TTsXdXbiYdVbcUh6LhWAh41wy4pv4abHbj",
	}
	for _, v := range vectors {
		want[v.index] = v.address
	}
	for index, address := range want {
		if got, err := a.Address(index); got != address || err != nil {
			t.Errorf("address %d is %s, %v; want %s", index, got, err, address)
		}
	}
	if got := a.receiving.String(); got != testChain {
		t.Errorf("the receiving chain is %s, want %s", got, testChain)
	}
	key, err := hdkeychain.NewKeyFromString(testAccount)
	for _, index := range []uint32{1, 0} { // the chain of change, which gives out none
		if err == nil {
			key, err = key.Derive(index)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := addressOf(key); got != "THLNguYKN3S8RUzVyi9ErynW4YmXLU5c8n" || err != nil {
		t.Errorf("the first address of the change is %s, %v", got, err)
	}
}

func TestAnIndexThatNeedsAPrivateKeyIsRefused(t *testing.T) {
	a := account(t)
	for _, index := range []uint32{1 << 31, 1<<31 + 1, 1<<32 - 1} {
		if got, err := a.Address(index); err == nil {
			t.Errorf("address %d is %s", index, got)
		}
	}
	if got, err := a.Address(1<<31 - 1); err != nil || !ValidAddress(got) {
		t.Errorf("the last address is %s, %v", got, err)
	}
}

func TestAddressesAreDerivedInParallel(t *testing.T) {
	a := account(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, v := range vectors {
				if got, err := a.Address(v.index); got != v.address || err != nil {
					t.Errorf("address %d is %s, %v", v.index, got, err)
				}
			}
		})
	}
	wg.Wait()
}

// retold is the test account with its version, depth and child index replaced.
func retold(version string, depth byte, child string) string {
	b := base58.Decode(testAccount)[:keyBytes]
	copy(b, version)
	b[4] = depth
	copy(b[9:], child)
	return checksummed(b)
}

func privateAccount(t *testing.T) string {
	t.Helper()
	seed, _ := hex.DecodeString(testSeed)
	key, err := hdkeychain.NewMaster(seed, &chaincfg.MainNetParams)
	for _, index := range []uint32{44, 195, 0} {
		if err != nil {
			t.Fatal(err)
		}
		key, err = key.Derive(hardened + index)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key.String()
}

func TestAKeyThatIsNoAccountIsRefused(t *testing.T) {
	const first, tenth = "\x80\x00\x00\x00", "\x80\x00\x00\x09"
	xprv := privateAccount(t)
	mistyped := testAccount[:len(testAccount)-1] + "e"
	for name, c := range map[string]struct{ key, says string }{
		"empty":                       {"", "empty"},
		"white space":                 {" \n", "empty"},
		"a private key":               {xprv, "private key"},
		"a private key of TREZOR":     {retoldPrivate(t, xprv), "private key"},
		"a damaged private key":       {xprv[:len(xprv)-1], "private key"},
		"the key of the chain":        {testChain, "depth 4"},
		"the key of the coin":         {retold(publicVersion, 2, first), "depth 2"},
		"a master key":                {retold(publicVersion, 0, "\x00\x00\x00\x00"), "depth 0"},
		"the key of an address":       {retold(publicVersion, 5, "\x00\x00\x00\x00"), "depth 5"},
		"an account not hardened":     {retold(publicVersion, 3, "\x00\x00\x00\x00"), "not hardened"},
		"the last one not hardened":   {retold(publicVersion, 3, "\x7f\xff\xff\xff"), "not hardened"},
		"a tpub":                      {retold("\x04\x35\x87\xcf", 3, first), "043587cf"},
		"a ypub":                      {retold("\x04\x9d\x7c\xb2", 3, first), "049d7cb2"},
		"a zpub":                      {retold("\x04\xb2\x47\x46", 3, first), "04b24746"},
		"one that is mistyped":        {mistyped, "checksum"},
		"one that is cut off":         {testAccount[:100], "not an extended public key"},
		"an address":                  {vectors[0].address, "not an extended public key"},
		"a character outside base58":  {"0" + testAccount[1:], "not an extended public key"},
		"words":                       {strings.Repeat("abandon ", 11) + "about", "not an extended public key"},
		"a key twice":                 {testAccount + testAccount, "not an extended public key"},
		"a point that is not a point": {noPoint(), "not an extended public key"},
	} {
		a, err := NewAccount(c.key)
		if err == nil {
			t.Errorf("%s is taken for %v", name, a)
			continue
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q in it", name, err, c.says)
		}
		for n := 0; n+12 <= len(c.key); n += 6 {
			if strings.Contains(err.Error(), c.key[n:n+12]) {
				t.Errorf("%s: the error repeats the key: %v", name, err)
				break
			}
		}
		if isPrivate := strings.Contains(name, "private"); isPrivate != errors.Is(err, errPrivateKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a, err := NewAccount(retold(publicVersion, 3, tenth)); err != nil || a.Fingerprint() == account(t).Fingerprint() {
		t.Errorf("account 9 is %v, %v", a, err)
	}
	if a, err := NewAccount("\t" + testAccount + "\n"); err != nil || a.Fingerprint() != account(t).Fingerprint() {
		t.Errorf("with white space around it, it is %v, %v", a, err)
	}
}

// retoldPrivate has the version of a yprv: what it holds decides.
func retoldPrivate(t *testing.T, xprv string) string {
	t.Helper()
	b := base58.Decode(xprv)[:keyBytes]
	copy(b, "\x04\x9d\x78\x78")
	return checksummed(b)
}

// noPoint has five, which is on no point of the curve, for the coordinate.
func noPoint() string {
	b := base58.Decode(testAccount)[:keyBytes]
	clear(b[46:])
	b[77] = 5
	return checksummed(b)
}

func TestAKeyIsNamedAndNeverShown(t *testing.T) {
	a := account(t)
	if got := a.Fingerprint(); got != testFingerprint {
		t.Errorf("the fingerprint is %s, want %s", got, testFingerprint)
	}
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "account", a, "config", DevchainConfig{Seed: []byte("seedseedseed")})
	shown := b.String() + fmt.Sprintf("%v %+v %#v %s", a, a, a, a) +
		fmt.Sprintf("%v %+v %#v", DevchainConfig{Seed: []byte("seedseedseed")}, DevchainConfig{Seed: []byte("seedseedseed")}, DevchainConfig{Seed: []byte("seedseedseed")})
	for _, secret := range []string{"xpub", testChain[20:40], "seedseed", "receiving", "115, 101", "115 101", "0x73, 0x65"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown: %s", secret, shown)
		}
	}
	if !strings.Contains(b.String(), testFingerprint) {
		t.Errorf("the log does not name the account: %s", b.String())
	}
}

func TestADevelopmentAccountKeepsNoPrivateKey(t *testing.T) {
	seed, _ := hex.DecodeString(testSeed)
	a, err := DevAccount(seed)
	if err != nil {
		t.Fatal(err)
	}
	if a.receiving.IsPrivate() || a.receiving.String() != testChain || a.Fingerprint() != account(t).Fingerprint() {
		t.Errorf("the receiving chain is %s of %v", a.receiving, a)
	}
	if got, err := a.Address(4); got != vectors[4].address || err != nil {
		t.Errorf("address 4 is %s, %v", got, err)
	}
	one, err1 := DevAccount(make([]byte, 32))
	other, err2 := DevAccount(append(make([]byte, 31), 1))
	if err1 != nil || err2 != nil || one.Fingerprint() == other.Fingerprint() {
		t.Errorf("of two seeds of 32 bytes: %v, %v, %v, %v", one, err1, other, err2)
	}
	if again, err := DevAccount(make([]byte, 32)); err != nil || again.Fingerprint() != one.Fingerprint() {
		t.Errorf("the same seed again: %v, %v", again, err)
	}
	if a, err := DevAccount(nil); err == nil {
		t.Errorf("no seed makes %v", a)
	}
}

func BenchmarkAddress(b *testing.B) {
	a, err := NewAccount(testAccount)
	if err != nil {
		b.Fatal(err)
	}
	for i := uint32(0); b.Loop(); i++ {
		if _, err := a.Address(i); err != nil {
			b.Fatal(err)
		}
	}
}
