package secure

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"time"
)

// TicketPeriod is how long one key seals session tickets. Those of the period before can be resumed, and those of the
// next: the clocks of replicas differ.
const TicketPeriod = 24 * time.Hour

// TicketKeys returns the keys of session tickets at a time, the one that seals first. They follow from a secret, so all
// replicas have the same ones and resume what another one began.
func TicketKeys(secret []byte, now time.Time) ([][32]byte, error) {
	period := now.Unix() / int64(TicketPeriod/time.Second)
	keys := make([][32]byte, 0, 3)
	for _, p := range []int64{period, period - 1, period + 1} {
		info := string(binary.BigEndian.AppendUint64([]byte("ticket "), uint64(p)))
		key, err := hkdf.Key(sha256.New, secret, nil, info, 32)
		if err != nil {
			return nil, fmt.Errorf("derive the key of session tickets: %w", err)
		}
		keys = append(keys, [32]byte(key))
	}
	return keys, nil
}

// Config returns a configuration for Server: the certificates of base, TLS 1.2 or later, and the protocols of a proxy
// before those of base.
func Config(base *tls.Config) *tls.Config {
	cfg := base.Clone()
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS12)
	cfg.NextProtos = append([]string{"h2", "http/1.1"}, base.NextProtos...)
	return cfg
}
