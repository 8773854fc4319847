package ports

import "context"

// Unit runs units of work that use the repositories of Q and no others. Its methods are those of
// Store.
type Unit[Q any] struct {
	store Store
	as    func(Tx) Q
}

// Narrow returns the Unit of a store. Since as returns its argument, a Tx, as a Q, the compiler
// checks that Tx has every repository of Q.
func Narrow[Q any](store Store, as func(tx Tx) Q) Unit[Q] { return Unit[Q]{store: store, as: as} }

// View calls Store.View with the repositories of Q.
func (u Unit[Q]) View(ctx context.Context, reads ReadSet, fn func(ctx context.Context, q Q) error) error {
	return u.store.View(ctx, reads, u.narrow(fn))
}

// Read calls Store.Read with the repositories of Q.
func (u Unit[Q]) Read(ctx context.Context, fn func(ctx context.Context, q Q) error) error {
	return u.store.Read(ctx, u.narrow(fn))
}

// Update calls Store.Update with the repositories of Q.
func (u Unit[Q]) Update(ctx context.Context, reads ReadSet, fn func(ctx context.Context, q Q) error) error {
	return u.store.Update(ctx, reads, u.narrow(fn))
}

func (u Unit[Q]) narrow(fn func(ctx context.Context, q Q) error) func(context.Context, Tx) error {
	as := u.as // the closure holds two functions and not the Unit
	return func(ctx context.Context, tx Tx) error { return fn(ctx, as(tx)) }
}
