package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
)

// scrapeErrors logs what goes wrong with a scrape. That the scraper went away is
// told for debugging only: there is a line for each family that was left.
type scrapeErrors struct{ log *slog.Logger }

// Println is what promhttp calls with words and an error.
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
