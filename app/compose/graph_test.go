package compose_test

import (
	"log/slog"
	"testing"

	"go.uber.org/fx"

	"agentproxy/app/compose"
)

func TestTheGraphsAreComplete(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, graph := range map[string]fx.Option{
		"the service":             compose.Service(compose.Settings{}, log),
		"the operator's commands": compose.Core(compose.Settings{}, log),
	} {
		if err := fx.ValidateApp(graph); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
