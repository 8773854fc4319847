package sqlite

import (
	"errors"
	"os"

	"github.com/mattn/go-sqlite3"
)

// reserveSize is how much space is kept for the files that SQLite makes beside a database to open it,
// and for its first writes. Without them not even reads are possible on a full disk.
const reserveSize = 256 << 10

// reserveOf returns the name of the file that keeps space for a database.
func reserveOf(path string) string { return path + ".reserve" }

// keepReserve makes the file where it is missing, if there is space. It is written in full: a file with a
// hole keeps nothing.
func keepReserve(path string) {
	file, err := os.OpenFile(reserveOf(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_, err = file.Write(make([]byte, reserveSize))
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(reserveOf(path))
	}
}

// freeReserve removes the file if err is that of a full disk, and reports whether it did.
func freeReserve(path string, err error) bool {
	fault, ok := errors.AsType[sqlite3.Error](err)
	full := ok && (fault.Code == sqlite3.ErrFull || fault.Code == sqlite3.ErrIoErr || fault.Code == sqlite3.ErrCantOpen)
	return full && os.Remove(reserveOf(path)) == nil
}
