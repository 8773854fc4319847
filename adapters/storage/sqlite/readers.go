package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
)

// reader is a connection that reads. It stays open, with the two statements around a snapshot
// prepared, so that a snapshot of one query costs little more than the query.
type reader struct {
	conn       *sql.Conn
	begin, end *sql.Stmt
}

// readers is the pool of connections that read.
type readers struct {
	db     *sql.DB
	count  int
	free   chan *reader
	closed chan struct{}
}

func openReaders(ctx context.Context, path string, n int) (*readers, error) {
	db, err := openReader(ctx, path, n)
	if err != nil {
		return nil, err
	}
	p := &readers{db: db, free: make(chan *reader, n), closed: make(chan struct{})}
	for range n {
		r, err := p.open(ctx)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.free <- r
		p.count++
	}
	return p, nil
}

func (p *readers) open(ctx context.Context) (*reader, error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open reader: %w", err)
	}
	r := &reader{conn: conn}
	var beginErr, endErr error
	r.begin, beginErr = conn.PrepareContext(ctx, "BEGIN")
	r.end, endErr = conn.PrepareContext(ctx, "COMMIT")
	if err := errors.Join(beginErr, endErr); err != nil {
		return nil, errors.Join(fmt.Errorf("open reader: %w", err), conn.Close())
	}
	return r, nil
}

// view runs fn on a snapshot, with the file mapped or not.
func (p *readers) view(ctx context.Context, mapped bool, fn func(*reader) error) error {
	r, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	// A statement with a context that can end costs a goroutine, and these return at once.
	if mapped {
		_, _ = r.conn.ExecContext(context.Background(), mapFile) // what cannot be mapped is read
	}
	if _, err := r.begin.ExecContext(context.Background()); err != nil {
		p.replace(r)
		return engine.Unavailable("begin snapshot", err)
	}
	defer func() {
		_, err := r.end.ExecContext(context.Background())
		if err == nil && mapped {
			_, err = r.conn.ExecContext(context.Background(), unmapFile)
		}
		if err != nil {
			p.replace(r)
			return
		}
		p.free <- r
	}()
	return fn(r)
}

// read runs fn on a connection without a snapshot.
func (p *readers) read(ctx context.Context, fn func(*reader) error) error {
	r, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { p.free <- r }()
	return fn(r)
}

func (p *readers) acquire(ctx context.Context) (*reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-p.closed:
		return nil, domain.ErrUnavailable
	default:
	}
	select {
	case r := <-p.free:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, domain.ErrUnavailable
	}
}

// replace closes a reader whose connection failed and opens another. If that fails too, the failed one
// goes back: its next use tries again.
func (p *readers) replace(r *reader) {
	// The connection may still be inside a snapshot, which ends with it.
	_ = r.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = r.conn.Close()
	if fresh, err := p.open(context.Background()); err == nil {
		r = fresh
	}
	p.free <- r
}

// close waits for the snapshots in use.
func (p *readers) close() error {
	close(p.closed)
	var errs []error
	for range p.count {
		r := <-p.free
		errs = append(errs, r.begin.Close(), r.end.Close(), r.conn.Close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}
