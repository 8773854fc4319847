package ports

import "context"

// Addresses keeps which static addresses are taken: each is one session's alone.
type Addresses interface {
	// Taken lists the addresses of a provider that are taken.
	Taken(ctx context.Context, provider string) (map[string]bool, error)
	// Take takes addresses for a session. It returns ErrDuplicate if one of them is taken.
	Take(ctx context.Context, provider, sessionID string, ips []string) error
	// Sold reports whether an address of any provider is taken.
	Sold(ctx context.Context, ip string) (bool, error)
	// Owners returns the session of each address of a provider that is taken.
	Owners(ctx context.Context, provider string) (map[string]string, error)
	// Free gives back all addresses of a session.
	Free(ctx context.Context, sessionID string) error
}
