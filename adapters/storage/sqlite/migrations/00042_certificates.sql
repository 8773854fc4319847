-- +goose Up

-- What the replicas share to have certificates of an authority: sealed files by name, and who is at it until when.
CREATE TABLE certificate_files (
	name TEXT NOT NULL PRIMARY KEY,
	sealed BLOB NOT NULL,
	stored_at INTEGER NOT NULL
) STRICT;
CREATE TABLE certificate_locks (
	name TEXT NOT NULL PRIMARY KEY,
	owner TEXT NOT NULL,
	until_at INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE certificate_locks;
DROP TABLE certificate_files;
