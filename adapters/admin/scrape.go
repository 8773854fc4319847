package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
)

// scrapeErrors logs errors of scrapes. That the scraper disconnected is logged for
// debugging only: there is a line for each family that was left.
type scrapeErrors struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l scrapeErrors) Println(v ...any) {
	level := slog.LevelWarn
	for _, part := range v {
		if err, ok := part.(error); ok {
			if _, ok := errors.AsType[*net.OpError](err); ok {
				level = slog.LevelDebug
			}
		}
	}
	l.log.Log(context.Background(), level, strings.TrimSuffix(fmt.Sprintln(v...), "\n"))
}
