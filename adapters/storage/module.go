package storage

import (
	"context"

	"go.uber.org/fx"

	"agentproxy/ports"
)

// Module opens the database that Config names, migrates it, and closes it when
// the application stops.
var Module = fx.Module("storage",
	fx.Provide(
		open,
		func(s *Store) ports.Store { return s },
		func(s *Store) ports.Audit { return s },
	),
)

// open migrates before anything else is built, because others look into the
// database when they are.
func open(lc fx.Lifecycle, config Config) (*Store, error) {
	s, err := Open(context.Background(), config)
	if err != nil {
		return nil, err
	}
	if err := s.Migrate(context.Background()); err != nil {
		_ = s.Close()
		return nil, err
	}
	lc.Append(fx.StopHook(s.Close))
	return s, nil
}
