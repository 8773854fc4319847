package ports

// IndexMark keeps outside the database which indexes of account keys were given out, so that a database that went
// back in time gives none of them out again.
type IndexMark interface {
	// Next returns the first index of a key that was not given out, or false if nothing is kept of the key.
	Next(fingerprint string) (next uint32, kept bool, err error)
	// Raise keeps an index as the first that was not given out, unless a later one is kept. It has been written to the
	// disk when Raise returns.
	Raise(fingerprint string, next uint32) error
}
