package certificate

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"agentproxy/ports"
)

// shelf is what replicas share: files, sealed, and locks. Names are those of certmagic.
type shelf struct {
	store   ports.Store
	secrets ports.Secrets
	now     func() time.Time
	mu      sync.Mutex
	held    map[string]*hold // by lock
}

var _ certmagic.Storage = (*shelf)(nil)

// hold is a lock that this process has.
type hold struct {
	owner string
	end   context.CancelFunc
	ended chan struct{}
}

func newShelf(deps Deps) *shelf {
	return &shelf{store: deps.Store, secrets: deps.Secrets, now: deps.Now, held: map[string]*hold{}}
}

// purpose binds what is sealed to its name.
func purpose(name string) string { return "certificate " + name }

// Store seals and stores a file.
func (s *shelf) Store(ctx context.Context, name string, value []byte) error {
	sealed := s.secrets.Seal(value, purpose(name))
	return s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Certificates().Put(ctx, name, sealed, s.now())
	})
}

func (s *shelf) load(ctx context.Context, name string) (value []byte, at time.Time, err error) {
	var sealed []byte
	var found bool
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		sealed, at, found, err = tx.Certificates().Get(ctx, name)
		return err
	})
	if err != nil {
		return nil, at, err
	}
	if !found {
		return nil, at, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	value, err = s.secrets.Open(sealed, purpose(name))
	return value, at, err
}

// Load returns a file. Its error is fs.ErrNotExist if there is none.
func (s *shelf) Load(ctx context.Context, name string) ([]byte, error) {
	value, _, err := s.load(ctx, name)
	return value, err
}

// Delete removes a file, and a folder with all that is in it.
func (s *shelf) Delete(ctx context.Context, name string) error {
	return s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Certificates().Delete(ctx, name)
	})
}

// Exists reports whether there is a file or a folder.
func (s *shelf) Exists(ctx context.Context, name string) bool {
	if _, _, err := s.load(ctx, name); err == nil {
		return true
	}
	list, err := s.List(ctx, name, true)
	return err == nil && len(list) > 0
}

// List returns the names in a folder, or of all files below it.
func (s *shelf) List(ctx context.Context, folder string, recursive bool) (list []string, err error) {
	var names []string
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		names, err = tx.Certificates().Names(ctx, folder)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: %w", folder, fs.ErrNotExist)
	}
	if recursive {
		return names, nil
	}
	seen := map[string]bool{}
	for _, name := range names {
		first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, folder), "/"), "/")
		if first = path.Join(folder, first); !seen[first] {
			seen[first] = true
			list = append(list, first)
		}
	}
	return list, nil
}

// Stat returns when a file was stored, and its size.
func (s *shelf) Stat(ctx context.Context, name string) (certmagic.KeyInfo, error) {
	value, at, err := s.load(ctx, name)
	if err != nil {
		list, errList := s.List(ctx, name, true)
		if errList != nil || len(list) == 0 {
			return certmagic.KeyInfo{}, err
		}
		return certmagic.KeyInfo{Key: name}, nil
	}
	return certmagic.KeyInfo{Key: name, Modified: at, Size: int64(len(value)), IsTerminal: true}, nil
}

// The time of a lock, how often it is extended, and how often another process looks whether it is free. A process that
// was killed has a lock no longer than its time.
const (
	lockTime   = 30 * time.Second
	extendTime = lockTime / 3
	lookTime   = time.Second
)

// Lock waits until this process has a lock.
func (s *shelf) Lock(ctx context.Context, name string) error {
	for {
		has, err := s.TryLock(ctx, name)
		if err != nil || has {
			return err
		}
		select {
		case <-time.After(lookTime):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TryLock takes a lock, which is extended until Unlock, and reports whether it was free.
func (s *shelf) TryLock(ctx context.Context, name string) (bool, error) {
	owner := rand.Text()
	has, err := s.takeLock(ctx, name, owner)
	if err != nil || !has {
		return false, err
	}
	extending, end := context.WithCancel(context.WithoutCancel(ctx))
	h := &hold{owner: owner, end: end, ended: make(chan struct{})}
	s.mu.Lock()
	s.held[name] = h
	s.mu.Unlock()
	go func() {
		defer close(h.ended)
		tick := time.NewTicker(extendTime)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = s.takeLock(extending, name, owner) // the next one may succeed
			case <-extending.Done():
				return
			}
		}
	}()
	return true, nil
}

// takeLock takes or extends a lock for an owner.
func (s *shelf) takeLock(ctx context.Context, name, owner string) (has bool, err error) {
	err = s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		now := s.now()
		has, err = tx.Certificates().Lock(ctx, name, owner, now, now.Add(lockTime))
		return err
	})
	return has && err == nil, err
}

// unlockTime bounds Unlock, which the end of its caller does not cut off.
const unlockTime = 10 * time.Second

// Unlock gives up a lock.
func (s *shelf) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	h := s.held[name]
	delete(s.held, name)
	s.mu.Unlock()
	if h == nil {
		return nil
	}
	h.end()
	<-h.ended
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTime)
	defer cancel()
	return s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Certificates().Unlock(ctx, name, h.owner)
	})
}
