package wire_test

import (
	"log/slog"
	"testing"

	"go.uber.org/fx"

	"agentproxy/adapters/configfile"
	"agentproxy/cmd/internal/wire"
)

func TestTheGraphsAreComplete(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, graph := range map[string]fx.Option{
		"the service":             wire.Service(configfile.Settings{}, log),
		"the operator's commands": wire.Core(configfile.Settings{}, log),
	} {
		if err := fx.ValidateApp(graph); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
