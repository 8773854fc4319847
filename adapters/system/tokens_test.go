package system_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"hash"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	_ "crypto/sha512"

	"agentproxy/adapters/system"
	"agentproxy/domain/account"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

var noon = time.Date(2026, 5, 15, 12, 0, 0, 123456000, time.UTC)

func newTokens(t testing.TB) *system.Tokens {
	return system.NewTokens(newSecrets(t, rootText), new(system.IDs))
}

func sample() ports.Token {
	return ports.Token{AgentID: "agt_aaaaaaaaaaaaaaaaaaaa", Version: 3,
		Scopes: []account.Scope{account.SessionsRead, account.BillingRead}, Expires: noon.Add(time.Hour)}
}

func sign(t testing.TB, tokens *system.Tokens, tok ports.Token) string {
	t.Helper()
	text, err := tokens.Sign(tok, noon)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestATokenIsReadBackAsItWasSigned(t *testing.T) {
	tokens, want := newTokens(t), sample()
	text := sign(t, tokens, want)
	got, err := tokens.Read(text, noon.Add(time.Minute))
	if err != nil || got.AgentID != want.AgentID || got.Version != want.Version || !slices.Equal(got.Scopes, want.Scopes) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if late := got.Expires.Sub(want.Expires); late < 0 || late >= time.Second || got.Expires.Location() != time.UTC {
		t.Errorf("it expires at %s, want %s rounded up to a second", got.Expires, want.Expires)
	}
	if text == sign(t, tokens, want) {
		t.Error("two tokens are the same: the jti is missing")
	}
	if _, err := system.NewTokens(newSecrets(t, rootText), new(system.IDs)).Read(text, noon); err != nil {
		t.Errorf("another replica does not take it: %v", err)
	}
	all := want
	all.Scopes = account.Scopes
	if n := len(sign(t, tokens, all)); n > 1000 {
		t.Errorf("a token with every scope has %d characters", n)
	}
}

func TestATokenExpires(t *testing.T) {
	tokens, tok := newTokens(t), sample()
	tok.Expires = noon.Truncate(time.Second).Add(time.Hour)
	text := sign(t, tokens, tok)
	if _, err := tokens.Read(text, tok.Expires.Add(-time.Microsecond)); err != nil {
		t.Errorf("just before: %v", err)
	}
	if _, err := tokens.Read(text, tok.Expires); !errors.Is(err, account.ErrExpiredToken) {
		t.Errorf("at its end: %v", err)
	}
	if _, err := tokens.Read(text, noon.Add(-20*time.Second)); err != nil {
		t.Errorf("a replica whose clock is 20 s behind refuses it: %v", err)
	}
	tok.Scopes = nil
	if got, err := tokens.Read(sign(t, tokens, tok), noon); err != nil || len(got.Scopes) != 0 {
		t.Errorf("a token without scopes has %v, %v", got.Scopes, err)
	}
}

// signingKey opens the token key: the same derivation, written down again.
func signingKey(t testing.TB) []byte {
	t.Helper()
	extract := hmac.New(sha256.New, make([]byte, 32))
	extract.Write([]byte(rootText))
	expand := hmac.New(sha256.New, extract.Sum(nil))
	expand.Write([]byte("agentproxy/token-signing/v1\x01"))
	return expand.Sum(nil)
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func macWith(h func() hash.Hash, key []byte, text string) string {
	mac := hmac.New(h, key)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

type object = map[string]any

// forge signs a header and claims with the right key, as only the service could.
func forge(t testing.TB, header, claims object) string {
	return macWith(sha256.New, signingKey(t), encode(header)+"."+encode(claims))
}

func TestForgedTokens(t *testing.T) {
	tokens, key := newTokens(t), signingKey(t)
	good := object{"iss": "agentproxy", "aud": "agentproxy-api", "sub": "agt_1", "jti": "tok_1", "tv": 1, "scope": "stats:read",
		"iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix()}
	hs256 := object{"alg": "HS256", "typ": "JWT"}
	if _, err := tokens.Read(forge(t, hs256, good), noon); err != nil {
		t.Fatalf("the forger's tool is broken: %v", err)
	}
	claims := func(change object) string {
		c := maps.Clone(good)
		for k, v := range change {
			if c[k] = v; v == nil {
				delete(c, k)
			}
		}
		return forge(t, hs256, c)
	}
	header := func(change object) string {
		h := maps.Clone(hs256)
		maps.Copy(h, change)
		return forge(t, h, good)
	}
	real := sign(t, tokens, sample())
	parts := strings.Split(real, ".")
	richer := encode(object{"iss": "agentproxy", "aud": "agentproxy-api", "sub": "agt_2", "jti": "tok_1", "tv": 1,
		"scope": "billing:write", "iat": noon.Unix(), "exp": noon.Add(time.Hour).Unix()})
	unsigned := encode(object{"alg": "none", "typ": "JWT"}) + "." + encode(good) + "."
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&private.PublicKey)})
	rs256 := encode(object{"alg": "RS256", "typ": "JWT"}) + "." + encode(good)
	digest := sha256.Sum256([]byte(rs256))
	rsaSignature, err := rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	// 32 bytes leave the last two bits of 43 digits unused: another digit, the same bytes.
	alias := real[:len(real)-1] + string(digits[strings.IndexByte(digits, real[len(real)-1])+1])
	for claim, text := range map[string]string{
		"no signature, alg none":             unsigned,
		"alg none with a signature":          unsigned + parts[2],
		"alg None":                           strings.Replace(unsigned, encode(object{"alg": "none", "typ": "JWT"}), encode(object{"alg": "None", "typ": "JWT"}), 1),
		"HS512 under the right key":          macWith(crypto.SHA512.New, key, encode(object{"alg": "HS512", "typ": "JWT"})+"."+encode(good)),
		"HS512 announced, HS256 made":        header(object{"alg": "HS512"}),
		"RS256 of a stranger's key":          rs256 + "." + base64.RawURLEncoding.EncodeToString(rsaSignature),
		"a public key taken for the secret":  macWith(sha256.New, public, encode(hs256)+"."+encode(good)),
		"another service's key":              macWith(sha256.New, []byte(rootText), encode(hs256)+"."+encode(good)),
		"an empty key":                       macWith(sha256.New, nil, encode(hs256)+"."+encode(good)),
		"a kid that is a path":               header(object{"kid": "../../dev/null"}),
		"a kid that is SQL":                  header(object{"kid": "x' UNION SELECT 'key"}),
		"a jku of the forger":                header(object{"jku": "https://evil.example/keys"}),
		"a key in the header":                header(object{"jwk": object{"kty": "oct", "k": "AAAA"}}),
		"a critical extension":               header(object{"crit": []string{"b64"}, "b64": false}),
		"no alg":                             forge(t, object{"typ": "JWT"}, good),
		"the header's letters in disorder":   macWith(sha256.New, key, base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"HS256"}`))+"."+encode(good)),
		"another issuer":                     claims(object{"iss": "other"}),
		"no issuer":                          claims(object{"iss": nil}),
		"another audience":                   claims(object{"aud": "other"}),
		"no audience":                        claims(object{"aud": nil}),
		"an empty audience":                  claims(object{"aud": []string{}}),
		"expired a second ago":               claims(object{"exp": noon.Add(-time.Second).Unix()}),
		"no expiry":                          claims(object{"exp": nil}),
		"an expiry that is a text":           claims(object{"exp": "never"}),
		"not valid yet":                      claims(object{"nbf": noon.Add(time.Minute).Unix()}),
		"issued in the future":               claims(object{"iat": noon.Add(time.Minute).Unix()}),
		"never issued":                       claims(object{"iat": nil}),
		"no agent":                           claims(object{"sub": nil}),
		"no id":                              claims(object{"jti": nil}),
		"a version that is a text":           claims(object{"tv": "1"}),
		"a version beyond counting":          claims(object{"tv": 1e30}),
		"claims of another agent":            parts[0] + "." + richer + "." + parts[2],
		"no signature":                       parts[0] + "." + parts[1] + ".",
		"a signature cut short":              real[:len(real)-2],
		"another text of the same signature": alias,
		"padding":                            real + "=",
		"trailing data":                      real + ".x",
		"a trailing dot":                     real + ".",
		"a trailing line feed":               real + "\n",
		"a line feed inside":                 parts[0] + "." + parts[1][:10] + "\n" + parts[1][10:] + "." + parts[2],
		"a space in front":                   " " + real,
		"a trailing zero byte":               real + "\x00",
		"two parts":                          parts[0] + "." + parts[1],
		"one part":                           parts[1],
		"nothing":                            "",
		"claims that are a list":             macWith(sha256.New, key, encode(hs256)+"."+encode([]int{1})),
		"claims that are null":               macWith(sha256.New, key, encode(hs256)+"."+encode(nil)),
		"claims that are no JSON":            macWith(sha256.New, key, encode(hs256)+"."+base64.RawURLEncoding.EncodeToString([]byte("{"))),
		"two objects of claims":              macWith(sha256.New, key, encode(hs256)+"."+base64.RawURLEncoding.EncodeToString([]byte("{}{}"))),
		"a body of 100 KB, rightly signed":   claims(object{"pad": strings.Repeat("a", 100_000)}),
	} {
		t.Run(claim, func(t *testing.T) {
			if got, err := tokens.Read(text, noon); !errors.Is(err, account.ErrExpiredToken) || got.AgentID != "" {
				t.Errorf("it is read as %+v, %v", got, err)
			}
		})
	}
}

// BenchmarkALongToken shows that a refusal does not take longer with the length.
func BenchmarkALongToken(b *testing.B) {
	tokens, text := newTokens(b), strings.Repeat("a", 1<<20)
	for b.Loop() {
		if _, err := tokens.Read(text, noon); err == nil {
			b.Fatal("it is read")
		}
	}
}

func TestALongTokenIsRefusedWithoutAllocation(t *testing.T) {
	tokens := newTokens(t)
	head := strings.SplitAfter(sign(t, tokens, sample()), ".")[0]
	for claim, text := range map[string]string{
		"1 MB of dots":                   strings.Repeat(".", 1<<20),
		"1 MB of dots behind our header": head + strings.Repeat(".", 1<<20),
		"1 MB of letters":                head + strings.Repeat("a", 1<<20),
	} {
		if _, err := tokens.Read(text, noon); err == nil {
			t.Errorf("%s: it is read", claim)
		}
		if n := testing.AllocsPerRun(10, func() { tokens.Read(text, noon) }); n > 0 {
			t.Errorf("%s: a refusal allocates %v times", claim, n)
		}
	}
}

func FuzzRead(f *testing.F) {
	tokens := system.NewTokens(newSecrets(f, rootText), new(fake.IDs)) // the same token in every process
	real := sign(f, tokens, sample())
	f.Add(real)
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := tokens.Read(text, noon); err == nil && text != real {
			t.Errorf("%q is read", text)
		}
	})
}

func BenchmarkReadToken(b *testing.B) {
	tokens := newTokens(b)
	text := sign(b, tokens, sample())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokens.Read(text, noon); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadForgedToken(b *testing.B) {
	tokens := newTokens(b)
	text := forge(b, object{"alg": "HS256", "typ": "JWT"}, object{"sub": "agt_1"})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokens.Read(text, noon); err == nil {
			b.Fatal("read")
		}
	}
}
