package main

import (
	"context"
	"os"
	"strings"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/app/fulfilment"
)

type secretCmd struct {
	Rotate secretRotateCmd `cmd:"" help:"Seal everything that is encrypted in the database under the current AGENTPROXY_SECRET."`
	Drop   secretDropCmd   `cmd:"" help:"Let what depends on AGENTPROXY_SECRET_PREVIOUS end, so that the service starts without it."`
}

type secretRotateCmd struct{ noted }

// Run reseals what previous root secrets have sealed.
func (c secretRotateCmd) Run(k *kit) error {
	return do(k, c.action("secret rotate", ""), func(ctx context.Context, access *fulfilment.Service) error {
		n, err := access.Reseal(ctx)
		if err != nil {
			return err
		}
		return k.record("resealed", n)
	})
}

type secretDropCmd struct{ reasoned }

// Run makes the service start without the previous root secrets, whatever depends on them.
func (c secretDropCmd) Run(k *kit) error {
	var store *storage.Store
	var secrets *system.Secrets
	return k.do(c.action("secret drop", ""), func(ctx context.Context) error {
		dropped, err := store.DropRoots(ctx, secrets.Checks()[0])
		if err != nil {
			return err
		}
		return k.record("keys", dropped.Keys, "deliveries", dropped.Sealed,
			"next", "remove AGENTPROXY_SECRET_PREVIOUS and restart; agent rotate-key gives an agent a new key")
	}, &store, &secrets)
}

// writeSecrets writes the root secrets beside a backup, under the names that a
// service with that database reads. It refuses files that exist.
func writeSecrets(r system.Roots, current, previous string) error {
	if err := writeSecret(current, string(r.Current)+"\n"); err != nil || len(r.Previous) == 0 {
		return err
	}
	var lines strings.Builder
	for _, root := range r.Previous {
		lines.WriteString(string(root) + "\n")
	}
	return writeSecret(previous, lines.String())
}

func writeSecret(file, text string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
