package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"agentproxy/adapters/mcp"
	"agentproxy/cmd/internal/version"
)

type mcpCommand struct{}

// Run serves until the input ends or the program is interrupted.
func (mcpCommand) Run(ctx context.Context, s streams, service *service) error {
	log := slog.New(slog.NewTextHandler(s.err, nil))
	err := mcp.ServeStdio(ctx, version.String(), log, service.tools, s.in, output{s.out})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// output is a writer that is not closed.
type output struct{ io.Writer }

// Close does nothing.
func (output) Close() error { return nil }
