package ports

import "log/slog"

// Base is what most families of use cases are made of.
type Base struct {
	Store   Store
	Clock   Clock
	IDs     IDs
	Secrets Secrets
	Log     *slog.Logger
}
