package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"agentproxy/domain"
)

// losses has a pool replace its connections when one of them is lost: the server was most likely
// restarted, or another took its place, and then the others are lost too. A connection belongs to the
// generation in which its dial began. The loss of one of the present generation begins the next: what is
// idle is closed, and what is in use once it is released, so who tries again gets a connection that
// was dialled after the loss. The losses of those that are older were dealt with by then.
//
// It is a tracer of pgx, which calls it at the end of each statement on the pool, also of those of the job queue.
type losses struct {
	mu         sync.Mutex
	generation int64
	pool       *pgxpool.Pool // nil until it is open
	open       map[*pgconn.PgConn]struct{}
}

var (
	_ pgx.QueryTracer = (*losses)(nil)
	_ pgx.BatchTracer = (*losses)(nil)
)

// generationOf is the key of a connection's generation.
const generationOf = "agentproxy.generation"

// askAfter is how long a connection is idle before the server is asked whether it is lost.
const askAfter = time.Second

// watch has every connection of a pool know its generation, and be opened to the server that answers.
func (l *losses) watch(c *pgxpool.Config, s *servers) {
	c.ConnConfig.Tracer = l
	c.ShouldPing = func(ctx context.Context, p pgxpool.ShouldPingParams) bool {
		if p.IdleDuration > askAfter {
			_, _ = p.Conn.Exec(ctx, "") // a ping, which tracers see
		}
		return p.Conn.IsClosed() // its ping fails, and the pool goes on to the next
	}
	c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		s.order(&c.Config)
		generation := l.count()
		c.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error {
			conn.CustomData()[generationOf] = generation
			return nil
		}
		return nil
	}
	l.open = map[*pgconn.PgConn]struct{}{}
	c.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[conn.PgConn()] = struct{}{}
		return nil
	}
	c.BeforeClose = func(conn *pgx.Conn) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, conn.PgConn())
	}
}

// giveUp closes every connection of the pool, since their server does not answer: what waits for it fails
// now, as if the server had ended, and not when its own time is over.
func (l *losses) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.generation++
	for conn := range l.open {
		disconnect(conn)
	}
	l.pool.Reset()
}

// count returns how often the connections were replaced.
func (l *losses) count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generation
}

// look replaces the connections of the pool if this one was lost during a statement with a context. The
// end of the context closes a connection too, and then the others are sound.
func (l *losses) look(ctx context.Context, conn *pgx.Conn) {
	if !conn.IsClosed() {
		return
	}
	own := conn.PgConn().CustomData()
	generation, ok := own[generationOf].(int64)
	delete(own, generationOf) // the statements that follow fail for the same reason
	if !ok || ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != l.generation {
		return
	}
	l.generation++
	if l.pool != nil {
		l.pool.Reset()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (l *losses) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l *losses) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	l.look(ctx, conn)
}

// TraceBatchStart implements pgx.BatchTracer.
func (l *losses) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (l *losses) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (l *losses) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchEndData) {
	l.look(ctx, conn)
}

// maxConnections is how many connections in turn are tried for what may run twice.
const maxConnections = 3

// again runs do until it had a connection that was not lost under it. A server that cannot be reached or
// does not answer in time is not tried again.
func again(ctx context.Context, do func() error) (err error) {
	for range maxConnections {
		err = do()
		_, unreachable := errors.AsType[*pgconn.ConnectError](err)
		if !lost(err) || unreachable || pgconn.Timeout(err) || errors.Is(err, domain.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
	}
	return err
}
