package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"go.uber.org/dig"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/conns"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/upstream"
	"agentproxy/app/operator"
	"agentproxy/app/payments"
	"agentproxy/app/playmoney"
	"agentproxy/cmd/internal/doctor"
	"agentproxy/cmd/internal/wire"
	"agentproxy/domain/exitlog"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

type doctorCmd struct {
	Timeout time.Duration `default:"20s" help:"How long each call of a provider may take."`
}

// Run lists what to mend. It changes nothing.
func (c doctorCmd) Run(k *kit) error {
	if c.Timeout <= 0 {
		return errors.New("timeout must be above 0")
	}
	settings, err := k.loader.Load()
	found := doctor.Configuration(configfile.FaultsOf(err), settings.Warnings)
	if err == nil {
		found = append(found, doctor.Settings(settings)...)
		found = append(found, doctor.Process(doctor.Host{Descriptors: conns.Descriptors(), UserID: os.Getuid(),
			Gateways: routers()}, settings)...)
		found = append(found, doctor.Files(files(settings))...)
		found = append(found, k.stored(settings)...)
		found = append(found, k.firstAddress(settings, c.Timeout)...)
		found = append(found, k.sellers(settings, c.Timeout)...)
	}
	found = found.Sorted()
	failed := found.Count(doctor.Error)
	if k.json {
		err = writeJSON(k.out, map[string]any{"ok": failed == 0, "findings": found})
	} else {
		err = k.findings(found)
	}
	if err != nil || failed == 0 {
		return err
	}
	return errors.New(count(failed, "error") + " to mend before strangers may come")
}

// findings prints findings as text.
func (k *kit) findings(list doctor.Findings) error {
	for _, f := range list {
		fmt.Fprintf(k.out, "%-8s %s\n", f.Level, strings.Map(printable, f.What))
		if f.Why != "" {
			fmt.Fprintf(k.out, "         why: %s\n", f.Why)
		}
		if f.Do != "" {
			fmt.Fprintf(k.out, "         do:  %s\n", f.Do)
		}
	}
	_, err := fmt.Fprintf(k.out, "\n%s, %s, %d ok\n", count(list.Count(doctor.Error), "error"),
		count(list.Count(doctor.Warning), "warning"), list.Count(doctor.OK))
	return err
}

// routers returns the routers of this host; none where they cannot be read.
func routers() []netip.Addr {
	four, _ := os.ReadFile("/proc/net/route")
	six, _ := os.ReadFile("/proc/net/ipv6_route")
	return doctor.Gateways(string(four), string(six))
}

// seenFor is the time before now of which doctor reads the exit log.
const seenFor = 15 * time.Minute

// clients reads which clients the gateway had lately.
func clients(ctx context.Context, store *storage.Store, now time.Time) (seen doctor.Clients, err error) {
	err = store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.ExitLog().Between(ctx, now.Add(-seenFor), now, func(c exitlog.Connection) {
			if c.Client.Addr().IsValid() {
				seen.Add(c.Agent, c.Client.Addr())
			}
		})
	})
	return seen, err
}

// files returns the files whose modes matter.
func files(s configfile.Settings) []doctor.File {
	list := []doctor.File{{Path: os.Getenv("AGENTPROXY_CONFIG"), What: "The configuration"},
		{Path: s.AdminUsers, What: "The file of users of the admin listener", Secret: true}}
	if s.DatabasePath == "" {
		return list
	}
	current, previous := wire.SecretFiles(s.DatabasePath)
	for _, path := range []string{s.DatabasePath, s.DatabasePath + "-wal", s.DatabasePath + "-shm"} {
		list = append(list, doctor.File{Path: path, What: "The database", Secret: true})
	}
	return append(list, doctor.File{Path: wire.AdminFile(s.DatabasePath), What: "The token of the admin listener",
		Secret: true}, doctor.File{Path: current, What: "The root secret", Secret: true},
		doctor.File{Path: previous, What: "The list of previous root secrets", Secret: true})
}

// stored checks the database, if there is one, and the root secret beside it.
func (k *kit) stored(s configfile.Settings) (found doctor.Findings) {
	if path := s.DatabasePath; path != "" {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return doctor.NewDatabase(path)
		}
		if s.RootSecret == "" { // which the graph would make anew
			file, _ := wire.SecretFiles(path)
			root, err := system.LoadSecret(file)
			if err != nil {
				return doctor.NoDatabase(err)
			}
			found.Root(file, string(root))
		}
	}
	var store *storage.Store
	var audit ports.Audit
	var clock ports.Clock
	var play *playmoney.Service
	var unconfigured *operator.Unconfigured
	err := k.with(s, wire.Core, func(ctx context.Context) error {
		at, err := store.BackedUpAt(ctx)
		if err != nil {
			return err
		}
		last, err := store.LastRow(ctx)
		if err != nil {
			return err
		}
		proof, err := audit.Proof(ctx)
		if err != nil {
			return err
		}
		found = append(found, doctor.Stored(doctor.Database{PostgreSQL: s.DatabaseURL != "",
			Capacity: s.DatabaseCapacity, Skew: store.ClockSkew(),
			LastRow: last, BackedUp: at, Faults: proof.Faults, ProvedAt: proof.SucceededAt, Now: clock.Now()})...)
		list, err := play.List(ctx)
		if err != nil {
			return err
		}
		left, held := recharge.PlayTotal(list)
		found = append(found, doctor.PlayMoney(s, len(list), left, held)...)
		seen, err := clients(ctx, store, clock.Now())
		if err != nil {
			return err
		}
		found = append(found, doctor.Balancers(s, seen)...)
		missing, err := unconfigured.List(ctx)
		found = append(found, doctor.Unconfigured(missing)...)
		return err
	}, &store, &audit, &clock, &play, &unconfigured)
	if err != nil {
		found = append(found, doctor.NoDatabase(dig.RootCause(err))...)
	}
	return found
}

// firstAddress asks the chain for money on the address of index 0 that no payment explains.
func (k *kit) firstAddress(s configfile.Settings, timeout time.Duration) (found doctor.Findings) {
	if s.Payments.AccountKey == "" || s.Payments.Off {
		return nil
	}
	var watcher *payments.Watcher
	var keys ports.Deriver
	err := k.with(s, wire.Core, func(ctx context.Context) error {
		address, err := keys.Address(0)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		sum, given, err := watcher.Unexplained(ctx, address)
		found = doctor.FirstAddress(address, sum, given, err)
		return nil
	}, &watcher, &keys)
	if err != nil { // a finding of stored
		return nil
	}
	return found
}

// sellers asks the providers, all at once.
func (k *kit) sellers(s configfile.Settings, timeout time.Duration) doctor.Findings {
	list, err := k.loader.Providers(s.Catalog, upstream.Env{EchoURL: wire.EchoURL(s)}, slog.New(slog.DiscardHandler))
	if err != nil {
		return doctor.Configuration(configfile.FaultsOf(err), nil)
	}
	answers := make([]doctor.Seller, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() {
			a := testCalls(k.ctx, s, p, tunnelTarget, timeout)
			answers[i] = doctor.Seller{Name: p.Name(), Offers: a.offers, Balance: a.funds, Err: a.err}
		})
	}
	wg.Wait()
	return doctor.Sellers(answers, s.Catalog.Products)
}
