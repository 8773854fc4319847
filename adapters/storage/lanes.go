package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"agentproxy/domain"
)

// lane is one connection that reads. It stays open, with the two statements
// around a snapshot prepared: that makes a snapshot of one query cost little
// more than the query.
type lane struct {
	conn       *sql.Conn
	begin, end *sql.Stmt
}

// lanes is the pool of connections that read.
type lanes struct {
	db     *sql.DB
	count  int
	free   chan *lane
	closed chan struct{}
}

func openLanes(ctx context.Context, path string, n int) (*lanes, error) {
	db, err := openReader(ctx, path, n)
	if err != nil {
		return nil, err
	}
	p := &lanes{db: db, free: make(chan *lane, n), closed: make(chan struct{})}
	for range n {
		l, err := p.lane(ctx)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.free <- l
		p.count++
	}
	return p, nil
}

func (p *lanes) lane(ctx context.Context) (*lane, error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open reader: %w", err)
	}
	l := &lane{conn: conn}
	var beginErr, endErr error
	l.begin, beginErr = conn.PrepareContext(ctx, "BEGIN")
	l.end, endErr = conn.PrepareContext(ctx, "COMMIT")
	if err := errors.Join(beginErr, endErr); err != nil {
		return nil, errors.Join(fmt.Errorf("open reader: %w", err), conn.Close())
	}
	return l, nil
}

// view runs fn between the beginning and the end of a snapshot.
func (p *lanes) view(ctx context.Context, fn func(*lane) error) error {
	l, err := p.take(ctx)
	if err != nil {
		return err
	}
	// A statement with a context that can end costs a goroutine, and these
	// two take no time.
	if _, err := l.begin.ExecContext(context.Background()); err != nil {
		p.replace(l)
		return unavailable("begin snapshot", err)
	}
	defer func() {
		if _, err := l.end.ExecContext(context.Background()); err != nil {
			p.replace(l)
			return
		}
		p.free <- l
	}()
	return fn(l)
}

// look runs fn on a connection, without a snapshot.
func (p *lanes) look(ctx context.Context, fn func(*lane) error) error {
	l, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer func() { p.free <- l }()
	return fn(l)
}

func (p *lanes) take(ctx context.Context) (*lane, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-p.closed:
		return nil, domain.ErrUnavailable
	default:
	}
	select {
	case l := <-p.free:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, domain.ErrUnavailable
	}
}

// replace gives up a lane whose connection failed. Should no other be had, the
// failed one goes back: its next use tries again.
func (p *lanes) replace(l *lane) {
	// The connection may be inside a snapshot still, which ends with it.
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = l.conn.Close()
	if fresh, err := p.lane(context.Background()); err == nil {
		l = fresh
	}
	p.free <- l
}

// close waits for the snapshots in use.
func (p *lanes) close() error {
	close(p.closed)
	var errs []error
	for range p.count {
		l := <-p.free
		errs = append(errs, l.begin.Close(), l.end.Close(), l.conn.Close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}
