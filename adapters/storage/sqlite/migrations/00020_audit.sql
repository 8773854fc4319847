-- +goose Up

-- What operators did. An action of a ref is kept once for each name.
CREATE TABLE audit_actions (
    seq     INTEGER NOT NULL PRIMARY KEY,
    id      TEXT    NOT NULL UNIQUE,
    at      INTEGER NOT NULL,
    who     TEXT    NOT NULL,
    via     TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    subject TEXT    NOT NULL, -- empty: the service
    reason  TEXT    NOT NULL,
    ref     TEXT    NOT NULL, -- empty: none
    details TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX audit_actions_ref ON audit_actions (name, ref) WHERE ref <> '';
CREATE INDEX audit_actions_subject ON audit_actions (subject, seq);

-- +goose StatementBegin
CREATE TRIGGER audit_actions_keep BEFORE UPDATE ON audit_actions
BEGIN
    SELECT RAISE(ABORT, 'an action of an operator is never changed');
END;
-- +goose StatementEnd

-- 730 days before the newest action.
-- +goose StatementBegin
CREATE TRIGGER audit_actions_stay BEFORE DELETE ON audit_actions
    WHEN OLD.at >= (SELECT at FROM audit_actions ORDER BY seq DESC LIMIT 1) - 63072000000000
BEGIN
    SELECT RAISE(ABORT, 'an action of an operator is kept for 730 days');
END;
-- +goose StatementEnd

-- What moved money in or out of the service, by time.
CREATE INDEX ledger_entries_at ON ledger_entries (at) WHERE account <> '';
CREATE INDEX upstream_orders_decided ON upstream_orders (decided_at) WHERE status = 'confirmed';

-- +goose Down
DROP INDEX upstream_orders_decided;
DROP INDEX ledger_entries_at;
DROP TABLE audit_actions;
