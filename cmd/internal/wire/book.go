package wire

import (
	"context"
	"time"

	"agentproxy/adapters/httpapi"
	"agentproxy/app/metering"
)

// bookWithin is how long an answer waits for what gateways reported to be booked: a database that hangs holds it up for
// no longer than that before it is read.
const bookWithin = 2 * time.Second

func newBook(t *metering.Service) httpapi.Book {
	return func(ctx context.Context, agentID string) error {
		ctx, cancel := context.WithTimeout(ctx, bookWithin)
		defer cancel()
		return t.Book(ctx, agentID)
	}
}
