// Package certificate stores what the replicas share to have certificates of an authority.
package certificate

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// certificates keeps certificates, the account that they are had by, and who is at it.
type certificates struct{ *work.Unit }

// Certificates returns the certificates in a unit.
func Certificates(u *work.Unit) ports.Certificates { return certificates{u} }

// fileRow is a row of certificate_files.
type fileRow struct {
	Name     string
	Sealed   []byte
	StoredAt time.Time `gorm:"serializer:micros;autoCreateTime:false"`
}

func (fileRow) TableName() string { return "certificate_files" }

// lockRow is a row of certificate_locks.
type lockRow struct {
	Name  string
	Owner string
	Until time.Time `gorm:"column:until_at;serializer:micros"`
}

func (lockRow) TableName() string { return "certificate_locks" }

func (r certificates) Get(ctx context.Context, name string) ([]byte, time.Time, bool, error) {
	var row fileRow
	found, err := work.One(r.ORM(ctx).Where("name = ?", name), &row)
	return row.Sealed, row.StoredAt, found, work.Wrap("read a file of certificates", err)
}

func (r certificates) Put(ctx context.Context, name string, sealed []byte, at time.Time) error {
	row := fileRow{Name: name, Sealed: sealed, StoredAt: at}
	_, err := r.Written(r.Write(ctx).Clauses(replace).Create(&row))
	return work.Wrap("store a file of certificates", err)
}

// replace lets an insertion take the place of the row of its name.
var replace = clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, UpdateAll: true}

// below restricts a query to the names below one. "0" is what follows "/" in the order of bytes.
func below(db *gorm.DB, name string) *gorm.DB {
	return db.Where("name > ? AND name < ?", name+"/", name+"0")
}

func (r certificates) Delete(ctx context.Context, name string) error {
	_, err := r.Written(r.Write(ctx).Where("name = ?", name).Delete(&fileRow{}))
	if err == nil {
		_, err = r.Written(below(r.Write(ctx), name).Delete(&fileRow{}))
	}
	return work.Wrap("remove files of certificates", err)
}

func (r certificates) Names(ctx context.Context, name string) ([]string, error) {
	query := r.ORM(ctx).Select("name").Order("name")
	if name != "" {
		query = below(query, name)
	}
	list, err := work.All(query, func(row fileRow) string { return row.Name })
	return list, work.Wrap("list files of certificates", err)
}

func (r certificates) Lock(ctx context.Context, name, owner string, now, until time.Time) (bool, error) {
	r.Serialize("certificate", name) // before the first there is no row to lock
	var row lockRow
	held, err := work.One(r.Locked(ctx).Where("name = ?", name), &row)
	if err != nil || held && row.Owner != owner && row.Until.After(now) {
		return false, work.Wrap("read a lock of certificates", err)
	}
	row = lockRow{Name: name, Owner: owner, Until: until}
	_, err = r.Written(r.Write(ctx).Clauses(replace).Create(&row))
	return err == nil, work.Wrap("take a lock of certificates", err)
}

func (r certificates) Unlock(ctx context.Context, name, owner string) error {
	_, err := r.Written(r.Write(ctx).Where("name = ? AND owner = ?", name, owner).Delete(&lockRow{}))
	return work.Wrap("give up a lock of certificates", err)
}
