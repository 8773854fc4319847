package storage

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"agentproxy/domain"
)

// A row that differs from a value of the domain in its tags alone converts to it and back.
// The serializer "micros" keeps a time.Time as micros does.
func init() { schema.RegisterSerializer("micros", microsSerializer{}) }

type microsSerializer struct{}

// Scan implements schema.SerializerInterface.
func (microsSerializer) Scan(ctx context.Context, field *schema.Field, row reflect.Value, stored any) error {
	n, ok := stored.(int64)
	if !ok {
		return fmt.Errorf("%s is a %T, not a time", field.Name, stored)
	}
	field.ReflectValueOf(ctx, row).Set(reflect.ValueOf(fromMicros(n)))
	return nil
}

// Value implements schema.SerializerInterface.
func (microsSerializer) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	return micros(value.(time.Time)), nil
}

// orm returns GORM on the connection of the unit.
func (t *tx) orm(ctx context.Context) *gorm.DB {
	db := t.store.orm.Session(&gorm.Session{NewDB: true, Context: t.listContext(ctx)})
	if err := t.Flush(); err != nil {
		_ = db.AddError(t.failed(err))
	}
	db.Statement.ConnPool = t.ORM()
	return db
}

// write returns GORM for a change.
func (t *tx) write(ctx context.Context) *gorm.DB {
	db := t.orm(ctx)
	if err := t.mayWrite(); err != nil {
		_ = db.AddError(err)
		return db
	}
	t.in.Wrote = true
	return db
}

// written returns how many rows a change by GORM affected, and records its failure.
func (t *tx) written(done *gorm.DB) (int64, error) {
	if done.Error != nil {
		return 0, t.failed(done.Error)
	}
	return done.RowsAffected, nil
}

// read returns GORM for rows that stay locked until the end of the unit.
func (t *tx) read(ctx context.Context) *gorm.DB {
	return t.locking(ctx, rowLock)
}

// share returns GORM for rows that the unit does not change: others may read them meanwhile.
func (t *tx) share(ctx context.Context) *gorm.DB {
	return t.locking(ctx, clause.LockingStrengthShare)
}

func (t *tx) locking(ctx context.Context, strength string) *gorm.DB {
	db := t.orm(ctx)
	if t.in == nil {
		return db
	}
	return db.Clauses(clause.Locking{Strength: strength})
}

// one reads one row. It returns false if there is none.
func one(db *gorm.DB, row any) (bool, error) {
	err := db.Take(row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return false, nil
	}
	return err == nil, err
}

// all reads the rows of a query.
func all[Row, T any](db *gorm.DB, from func(Row) T) ([]T, error) {
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

// pageOf reads a page of the rows of db, newest first by seq, which is their place in the list. It
// skips the pages before within an index.
func pageOf[Row, T any](ctx context.Context, t *tx, db *gorm.DB, page domain.Page, from func(Row) T,
	where func(*gorm.DB) *gorm.DB,
) (domain.List[T], error) {
	list := domain.List[T]{Page: page}
	var total int64
	if err := where(t.orm(ctx).Model(new(Row))).Count(&total).Error; err != nil {
		return list, err
	}
	list.Total = int(total)
	places := where(t.orm(ctx).Model(new(Row))).Order("seq DESC").Limit(page.Size + 1)
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
	list.Items, err = all(where(db).Where("seq <= ? AND seq >= ?", numbers[0], numbers[len(numbers)-1]).
		Order("seq DESC"), from)
	return list, err
}

// someSizes repeats the last value until there are a power of two of them, so that lists of any
// length make few statements, which stay prepared.
func someSizes(values []string) []string {
	list := values[:len(values):len(values)]
	for len(list)&(len(list)-1) != 0 {
		list = append(list, values[len(values)-1])
	}
	return list
}
