package certificate

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"time"
)

// maxFile bounds what is read of a file.
const maxFile = 1 << 20

// files is a pair of PEM files and what was read of them last.
type files struct {
	cert, key string
	last      string // both texts, or the fault
}

// Check returns an error if a certificate and its key cannot be read, are no pair, or have expired. It repeats no
// text of the key.
func Check(certFile, keyFile string, now time.Time) error {
	_, _, err := (&files{cert: certFile, key: keyFile}).read(now)
	return err
}

// Uncovered returns those of names that the certificate of files does not name. An IP address is a name too.
func Uncovered(certFile, keyFile string, names []string) (missing []string, err error) {
	cert, err := readFile(certFile)
	if err != nil {
		return nil, err
	}
	key, err := readFile(keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
	}
	for _, name := range names {
		if pair.Leaf.VerifyHostname(name) != nil {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// read returns the pair, or its fault, and whether either is another one than at the last call.
func (f *files) read(now time.Time) (pair *tls.Certificate, changed bool, err error) {
	cert, err := readFile(f.cert)
	if err == nil {
		var key []byte
		if key, err = readFile(f.key); err == nil {
			changed = f.differs(string(cert) + "\x00" + string(key))
			pair, err = parse(cert, key, now)
			if err != nil {
				err = fmt.Errorf("%s and %s: %w", f.cert, f.key, err)
			}
			return pair, changed, err
		}
	}
	return nil, f.differs("fault: " + err.Error()), err
}

func (f *files) differs(text string) bool {
	differs := text != f.last
	f.last = text
	return differs
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	return text, nil
}

// parse returns a pair that can be presented at a time.
func parse(cert, key []byte, now time.Time) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	if now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("the certificate has expired at %s", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return &pair, nil
}
