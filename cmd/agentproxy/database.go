package main

import (
	"context"
	"fmt"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/app/ledger"
	"agentproxy/cmd/internal/wire"
	"agentproxy/domain"
	"agentproxy/ports"
)

type adjustCmd struct {
	AgentID string `arg:"" name:"AGENT_ID"`
	Amount  string `required:"" help:"US dollars, such as -1.50."`
	Ref     string `help:"Your reference of this correction; run again with the same one, it is not booked twice."`
	signed
	Reason string `required:"" help:"Why; shown to the agent."`
}

// Run books a correction.
func (c adjustCmd) Run(k *kit) error {
	amount, err := domain.ParseMoney(c.Amount)
	if err != nil {
		return domain.InvalidField("amount", "must be US dollars with at most 6 decimals")
	}
	action := reasoned{c.signed, c.Reason}.action("adjust", c.AgentID)
	action.Ref, action.Details = c.Ref, "amount="+amount.String()
	return do(k, action, func(ctx context.Context, wallet *ledger.Wallet) error {
		e, err := wallet.AdjustOnce(ctx, c.AgentID, amount, c.Reason, c.Ref)
		if err != nil {
			return err
		}
		return k.record("transaction_id", e.ID, "agent_id", e.AgentID, "amount", e.Amount().String(),
			"balance_after", e.BalanceAfter.String())
	})
}

type migrateCmd struct{}

// Run migrates the database to this program's schema.
func (migrateCmd) Run(k *kit) error {
	var store *storage.Store
	return k.on(wire.Migration, func(ctx context.Context) error {
		version, _, err := store.SchemaVersion(ctx)
		if err != nil {
			return err
		}
		return k.record("schema_version", version)
	}, &store)
}

type backupCmd struct {
	noted
	File       string `arg:"" name:"FILE" help:"A file that does not exist yet."`
	WithSecret bool   `help:"Write the root secret to FILE.secret too. Anyone with both files has every credential."`
}

// noSecret is printed for a backup without the root secret.
const noSecret = "not included, and without it the backup is of no use: keep AGENTPROXY_SECRET or the .secret file " +
	"in another safe place, or use --with-secret"

// Run copies the database.
func (c backupCmd) Run(k *kit) error {
	var store *storage.Store
	var proofs ports.Audit
	var roots system.Roots
	action := c.action("backup", "")
	action.Details = fmt.Sprintf("file=%s with_secret=%t", c.File, c.WithSecret)
	return k.do(action, func(ctx context.Context) error {
		if err := store.Backup(ctx, c.File); err != nil {
			return err
		}
		head, err := writeHead(ctx, proofs, c.File+".head")
		if err != nil {
			return fmt.Errorf("the database is in %s, the head of its proof could not be written: %w", c.File, err)
		}
		if !c.WithSecret {
			return k.record("file", c.File, "head", head, "secret", noSecret)
		}
		current, previous := wire.SecretFiles(c.File)
		if err := writeSecrets(roots, current, previous); err != nil {
			return fmt.Errorf("the database is in %s, its root secret could not be written: %w", c.File, err)
		}
		return k.record("file", c.File, "head", head, "secret", current)
	}, &store, &proofs, &roots)
}
