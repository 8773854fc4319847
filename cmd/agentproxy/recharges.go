package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/chain"
	"agentproxy/app/payments"
	"agentproxy/app/playmoney"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

type rechargeCmd struct {
	List      rechargeListCmd      `cmd:"" help:"List recharge orders of all agents, newest first."`
	Show      rechargeShowCmd      `cmd:"" help:"Show one order and the transfers that paid it."`
	Audit     rechargeAuditCmd     `cmd:"" help:"Compare every address with the chain; exits with 1 and the addresses that differ."`
	Addresses rechargeAddressesCmd `cmd:"" help:"List every payment address with its balance on the chain."`
	Moves     rechargeMovesCmd     `cmd:"" help:"List the newest transfers between two payment addresses, which are no payments."`
	Aside     rechargeAsideCmd     `cmd:"" help:"List final transfers that could not be booked; each is tried again."`
	WriteOff  rechargeWriteOffCmd  `cmd:"" name:"write-off" help:"Write off what was paid on a development chain or a test network."`
	Rescan    rechargeRescanCmd    `cmd:"" help:"Read the history of every address again and credit what was missed."`
}

type rechargeListCmd struct {
	Status   string `enum:",${recharge_statuses}" default:"" help:"Only orders of this status."`
	Page     int    `default:"1" help:"Page, from 1."`
	PageSize int    `default:"100" help:"Orders per page, at most 100."`
}

// Run lists orders.
func (c rechargeListCmd) Run(k *kit) error {
	page, err := pageOf(c.Page, c.PageSize)
	if err != nil {
		return err
	}
	return core(k, func(ctx context.Context, recharges *payments.Orders) error {
		list, err := recharges.All(ctx, recharge.Status(c.Status),
			page)
		if err != nil {
			return err
		}
		t := table{columns: []string{"order_id", "agent_id", "status", "amount", "received", "network", "wallet_address",
			"created_at"}}
		for _, o := range list.Items {
			t.add(o.ID, o.AgentID, o.Status, o.Amount.String(), o.Received.String(), o.Network, o.Address,
				o.CreatedAt.Format(time.RFC3339))
		}
		return t.print(k)
	})
}

type rechargeShowCmd struct {
	OrderID string `arg:"" name:"ORDER_ID"`
}

// Run shows one order.
func (c rechargeShowCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, recharges *payments.Orders) error {
		d, err := recharges.Show(ctx, c.OrderID)
		if err != nil {
			return err
		}
		o := d.Order
		transfers := table{columns: []string{"tx_hash", "log_index", "amount", "from", "block", "block_time", "state"}}
		for _, t := range d.Transfers {
			transfers.add(t.TxID, t.LogIndex, t.Amount.String(), t.From, t.Block, t.BlockTime.Format(time.RFC3339), t.State)
		}
		fields := []any{"order_id", o.ID, "agent_id", o.AgentID, "status", o.Status, "amount", o.Amount.String(),
			"received", o.Received.String(), "network", o.Network, "wallet_address", o.Address,
			"derivation_index", d.Wallet.Index, "key_fingerprint", d.Wallet.Fingerprint,
			"confirmations", d.Confirmations, "required_confirmations", d.Required,
			"created_at", o.CreatedAt.Format(time.RFC3339), "expire_time", o.ExpiresAt.Format(time.RFC3339), "paid_at",
			timeText(o.PaidAt)}
		if k.json {
			return k.record(append(fields, "transfers", transfers.objects())...)
		}
		if err := k.record(fields...); err != nil || len(transfers.rows) == 0 {
			return err
		}
		fmt.Fprintln(k.out)
		return transfers.print(k)
	})
}

// timeText formats a time, and returns "" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

type rechargeAddressesCmd struct {
	CSV bool `help:"Print comma-separated values."`
}

// Run lists addresses.
func (c rechargeAddressesCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, watcher *payments.Watcher) error {
		list, err := watcher.Holdings(ctx)
		if err != nil {
			return err
		}
		t := table{columns: []string{"index", "address", "balance", "agent_id", "key_fingerprint", "created_at"}}
		for _, h := range list {
			t.add(h.Index, h.Address.Address, h.Balance.String(), h.AgentID, h.Fingerprint, timeText(h.CreatedAt))
		}
		if c.CSV {
			return t.csv(k.out)
		}
		return t.print(k)
	})
}

type rechargeMovesCmd struct{}

// Run lists transfers between payment addresses.
func (rechargeMovesCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, watcher *payments.Watcher) error {
		list, err := watcher.OwnMoves(ctx)
		if err != nil {
			return err
		}
		t := table{columns: []string{"tx_hash", "log_index", "amount", "from", "to", "block", "block_time"}}
		for _, m := range list {
			t.add(m.TxID, m.LogIndex, m.Amount.String(), m.From, m.To, m.Block, timeText(m.BlockTime))
		}
		return t.print(k)
	})
}

type rechargeAsideCmd struct{}

// Run lists transfers that are set aside.
func (rechargeAsideCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, watcher *payments.Watcher) error {
		list, _, err := watcher.Aside(ctx, mostAside)
		if err != nil {
			return err
		}
		t := table{columns: []string{"tx_hash", "log_index", "agent_id", "amount", "block", "since", "tried_at", "tries",
			"reason"}}
		for _, a := range list {
			t.add(a.TxID, a.LogIndex, a.AgentID, a.Amount.String(), a.Block, timeText(a.SetAt), timeText(a.TriedAt), a.Tries,
				a.Reason)
		}
		return t.print(k)
	})
}

// mostAside is how many transfers are listed that could not be booked.
const mostAside = 1000

type rechargeWriteOffCmd struct{ reasoned }

// Run writes off money that cost nothing.
func (c rechargeWriteOffCmd) Run(k *kit) error {
	return do(k, c.action("recharge write-off", ""), func(ctx context.Context, play *playmoney.Service) error {
		wallets, taken, held, err := play.WriteOff(ctx, c.Reason)
		if err != nil {
			return err
		}
		return k.record("wallets", wallets, "written_off", taken.String(), "still_held", held.String())
	})
}

type rechargeAuditCmd struct{}

var errDrift = errors.New("the chain and the ledger differ")

// Run compares every address with the chain.
func (rechargeAuditCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, payments *payments.Watcher) error {
		checked, drifts, err := payments.AuditAll(ctx)
		if err != nil {
			return err
		}
		if len(drifts) == 0 {
			return k.record("addresses", checked, "differences", 0)
		}
		t := table{columns: []string{"agent_id", "address", "chain", "known", "difference", "fault"}}
		for _, d := range drifts {
			t.add(d.AgentID, d.Address, d.Chain.String(), d.Known.String(), (d.Chain - d.Known).String(), d.Fault)
		}
		return errors.Join(t.print(k), fmt.Errorf("%w at %d of %d addresses", errDrift, len(drifts), checked))
	})
}

type rechargeRescanCmd struct {
	noted
	From string `required:"" help:"A day (2026-11-01) or a time (2026-11-01T12:00:00Z), UTC."`
}

// Run reads the chain again from a time on.
func (c rechargeRescanCmd) Run(k *kit) error {
	from, err := moment("from", c.From)
	if err != nil {
		return err
	}
	action := c.action("recharge rescan", "")
	action.Details = "from=" + c.From
	return do(k, action, func(ctx context.Context, payments *payments.Watcher) error {
		addresses, credited, err := payments.Rescan(ctx, from)
		if err != nil {
			return err
		}
		return k.record("addresses", addresses, "credited", credited)
	})
}

type devchainCmd struct {
	Send devchainSendCmd `cmd:"" help:"Send development USDT to an address, as an agent's payment would arrive."`
}

type devchainSendCmd struct {
	noted
	To     string `required:"" help:"The wallet_address of an order."`
	Amount string `required:"" help:"USDT, such as 12.50."`
}

// Run puts a transfer into the next block of the development chain.
func (c devchainSendCmd) Run(k *kit) error {
	amount, err := domain.ParseMoney(c.Amount)
	if err != nil || amount <= 0 {
		return domain.InvalidField("amount", "must be USDT above 0 with at most 6 decimals")
	}
	var dev *chain.Devchain
	var cfg payments.Config
	action := c.action("devchain send", c.To)
	action.Details = "amount=" + amount.String()
	return k.do(action, func(ctx context.Context) error {
		if cfg.Off {
			return recharge.ErrOff.Msgf("there is no development chain outside development mode: AGENTPROXY_DEV=true turns it " +
				"on, AGENTPROXY_TRON_XPUB real payments")
		}
		if dev == nil {
			return errors.New("AGENTPROXY_TRON_XPUB is set: payments come from TRON, and there is no development chain")
		}
		t, err := dev.Send(ctx, c.To, amount)
		if err != nil {
			return err
		}
		return k.record("tx_hash", t.TxID, "to", t.To, "amount", t.Amount.String(), "block", t.Block,
			"final_after_block", t.Block+int64(dev.Required()))
	}, &dev, &cfg)
}
