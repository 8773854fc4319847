package ports

// Deriver makes receiving addresses from the operator's account key, which
// holds no private key.
type Deriver interface {
	// Fingerprint names the account key and reveals nothing of it.
	Fingerprint() string
	// Address derives the address of an index below 2^31.
	Address(index uint32) (string, error)
}
