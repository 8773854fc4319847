package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"go.uber.org/fx"

	"agentproxy/ports"
)

// Module opens the database that Config names, migrates it, and closes it when
// the application stops. It provides the clock that the replicas share.
var Module = module(func(Config) error { return nil }, func(s *Store) error { return s.Migrate(context.Background()) })

// MigratedModule is Module for a database that is in use: it refuses one that
// Module would change, with an ErrOlderSchema.
var MigratedModule = module(func(config Config) error {
	// Opening the file would make it.
	if _, err := os.Stat(config.Path); config.URL == "" && errors.Is(err, fs.ErrNotExist) {
		return ErrOlderSchema
	}
	return nil
}, func(s *Store) error {
	return s.CheckSchema(context.Background())
})

func module(look func(Config) error, prepare func(*Store) error) fx.Option {
	return fx.Module("storage", fx.Provide(
		func(lc fx.Lifecycle, config Config) (*Store, error) {
			if err := look(config); err != nil {
				return nil, err
			}
			return open(lc, config, prepare)
		},
		func(s *Store) ports.Store { return s },
		func(s *Store) ports.Audit { return s },
		(*Store).Clock,
	))
}

// open prepares the database before anything else is built, because others look into the
// database when they are.
func open(lc fx.Lifecycle, config Config, prepare func(*Store) error) (*Store, error) {
	s, err := Open(context.Background(), config)
	if err != nil {
		return nil, err
	}
	if err := prepare(s); err != nil {
		_ = s.Close()
		return nil, err
	}
	lc.Append(fx.StopHook(s.Close))
	return s, nil
}
