package upstream

import (
	"errors"
	"log/slog"

	"agentproxy/ports"
)

var proxySellerKind = Kind{make: func(Spec, *slog.Logger) (ports.Provider, error) { return nil, errors.New("not built") }}
