-- +goose Up

-- What the replicas share to have certificates of an authority: sealed files by name, and who is at it until when.
CREATE TABLE certificate_files (
	name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	sealed BYTEA NOT NULL,
	stored_at BIGINT NOT NULL
);
CREATE TABLE certificate_locks (
	name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	owner TEXT COLLATE "C" NOT NULL,
	until_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE certificate_locks;
DROP TABLE certificate_files;
