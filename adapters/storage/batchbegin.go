package storage

import (
	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// beginBatch begins a transaction for units that read what the list names.
func (s *Store) beginBatch(list []*ports.ReadSet) (*engine.Transaction, error) {
	pipe, err := s.postgres.Pipeline()
	if err != nil {
		return nil, err
	}
	b := s.newBatch(s.counted(pipe))
	if err := b.readAhead(list); err != nil {
		_ = pipe.Rollback()
		return nil, err
	}
	in := &engine.Transaction{Conn: batchConn{b}, Rollback: pipe.Rollback}
	in.Commit = func() error {
		b.queueWrites()
		if err := b.writeJobs(); err != nil {
			_ = pipe.Rollback()
			return err
		}
		claim := s.recent.writing(b)
		err := b.pipe.Commit()
		s.recent.wrote(claim, b, err)
		return err
	}
	in.End = func(failed bool) bool {
		alone := b.alone
		keep := !failed && !alone
		in.Wrote = keep && b.wrote
		b.end(keep)
		return alone
	}
	return in, nil
}
