package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"agentproxy/adapters/configfile"
	"agentproxy/cmd/internal/wire"
	"agentproxy/domain"
)

// kit holds what every command needs.
type kit struct {
	ctx    context.Context
	in     io.Reader
	out    io.Writer
	errOut io.Writer
	json   bool
	loader wire.Loader
}

// complain prints an error, as JSON if the command prints JSON.
func (k *kit) complain(err error) {
	message, code := dig.RootCause(err).Error(), "FAILED"
	if e, ok := errors.AsType[*domain.Error](err); ok {
		message, code = e.Message, e.Code
	}
	var known interface{ Cause() string }
	switch {
	case !errors.As(err, &known):
	case known.Cause() == "read_only":
		message = "the database takes no writes: it is a standby, on which commands that read work alone"
	default:
		message += " (" + strings.ReplaceAll(known.Cause(), "_", " ") + ")"
	}
	if k.json {
		_ = writeJSON(k.errOut, map[string]any{"error": map[string]string{"code": code, "message": message}})
		return
	}
	fmt.Fprintln(k.errOut, "agentproxy:", message)
}

// graph is a function of wire that returns the graph of the service.
type graph func(configfile.Settings, *slog.Logger) fx.Option

// core runs fn on the graph of the operator's commands, from which it sets targets.
func (k *kit) core(fn func(ctx context.Context) error, targets ...any) error {
	settings, err := k.loader.Load()
	if err != nil {
		return err
	}
	// The usual cause is that the command runs in another folder than the service.
	if path := settings.DatabasePath; path != "" {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no database at %s: set AGENTPROXY_DATABASE_URL to the value that the service has, or "+
				"start the service first", path)
		}
	}
	return k.with(settings, wire.Core, fn, targets...)
}

// core runs fn with a part of the graph of the operator's commands.
func core[T any](k *kit, fn func(ctx context.Context, part T) error) error {
	var part T
	return k.core(func(ctx context.Context) error { return fn(ctx, part) }, &part)
}

// on is like core on another graph, whose database may not exist yet.
func (k *kit) on(graph graph, fn func(ctx context.Context) error, targets ...any) error {
	settings, err := k.loader.Load()
	if err != nil {
		return err
	}
	return k.with(settings, graph, fn, targets...)
}

func (k *kit) with(settings configfile.Settings, graph graph, fn func(ctx context.Context) error,
	targets ...any) error {
	settings.Payments.DevchainBlock = 0 // blocks of the development chain are made by the service alone
	logger := slog.New(slog.NewTextHandler(k.errOut, &slog.HandlerOptions{Level: slog.LevelWarn}))
	app := fx.New(graph(settings, logger), fx.Replace(k.loader), fx.Populate(targets...))
	if err := app.Err(); err != nil {
		return err
	}
	if err := app.Start(k.ctx); err != nil {
		return err
	}
	return errors.Join(fn(k.ctx), app.Stop(context.WithoutCancel(k.ctx)))
}
