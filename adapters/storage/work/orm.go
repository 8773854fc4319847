package work

import (
	"cmp"
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/domain"
)

// ORM returns GORM on the connection of the unit.
func (u *Unit) ORM(ctx context.Context) *gorm.DB {
	db := u.Database.ORM.Session(&gorm.Session{NewDB: true, Context: u.ListContext(ctx)})
	if err := cmp.Or(u.Set.Flush(), u.Conn.Flush()); err != nil {
		_ = db.AddError(u.Failed(err))
	}
	db.Statement.ConnPool = u.Conn.ORM()
	return db
}

// Write returns GORM for a change.
func (u *Unit) Write(ctx context.Context) *gorm.DB {
	changed := u.change()
	db := u.ORM(ctx)
	if err := changed; err != nil {
		_ = db.AddError(err)
		return db
	}
	u.In.Wrote = true
	return db
}

// Written returns how many rows a change by GORM affected, and records its failure.
func (u *Unit) Written(done *gorm.DB) (int64, error) {
	if done.Error != nil {
		return 0, u.Failed(done.Error)
	}
	return done.RowsAffected, nil
}

// Locked returns GORM for rows that stay locked until the end of the unit.
func (u *Unit) Locked(ctx context.Context) *gorm.DB {
	return u.locking(ctx, RowLock)
}

// Shared returns GORM for rows that the unit does not change: others may read them meanwhile.
func (u *Unit) Shared(ctx context.Context) *gorm.DB {
	return u.locking(ctx, clause.LockingStrengthShare)
}

func (u *Unit) locking(ctx context.Context, strength string) *gorm.DB {
	db := u.ORM(ctx)
	if u.In == nil {
		return db
	}
	return db.Clauses(clause.Locking{Strength: strength})
}

// One reads one row. It returns false if there is none.
func One(db *gorm.DB, row any) (bool, error) {
	err := db.Take(row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return false, nil
	}
	return err == nil, err
}

// All reads the rows of a query and maps each by from.
func All[Row, T any](db *gorm.DB, from func(Row) T) ([]T, error) {
	var rows []Row
	if err := db.Find(&rows).Error; err != nil {
		return nil, err
	}
	list := make([]T, len(rows))
	for i, row := range rows {
		list[i] = from(row)
	}
	return list, nil
}

// PageOf reads a page of the rows of db, newest first by seq, which is their place in the list. It
// skips the pages before within an index.
func PageOf[Row, T any](ctx context.Context, u *Unit, db *gorm.DB, page domain.Page, from func(Row) T,
	where func(*gorm.DB) *gorm.DB,
) (domain.List[T], error) {
	list := domain.List[T]{Page: page}
	var total int64
	if err := where(u.ORM(ctx).Model(new(Row))).Count(&total).Error; err != nil {
		return list, err
	}
	list.Total = int(total)
	places := where(u.ORM(ctx).Model(new(Row))).Order("seq DESC").Limit(page.Size + 1)
	switch {
	case page.After > 0:
		places = places.Where("seq < ?", page.After)
	case list.Total <= page.Offset():
		return list, nil
	default:
		places = places.Offset(page.Offset())
	}
	var numbers []int64
	if err := places.Pluck("seq", &numbers).Error; err != nil || len(numbers) == 0 {
		return list, err
	}
	if len(numbers) > page.Size {
		numbers = numbers[:page.Size]
		list.Next = numbers[page.Size-1]
	}
	var err error
	list.Items, err = All(where(db).Where("seq <= ? AND seq >= ?", numbers[0], numbers[len(numbers)-1]).
		Order("seq DESC"), from)
	return list, err
}

// SomeSizes repeats the last value until there are a power of two of them, so that lists of any
// length make few statements, which stay prepared.
func SomeSizes(values []string) []string {
	list := values[:len(values):len(values)]
	for len(list)&(len(list)-1) != 0 {
		list = append(list, values[len(values)-1])
	}
	return list
}
