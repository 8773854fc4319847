package contract

import (
	"context"
	"testing"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

var devchainClaims = []claim{
	{"a genesis is read back as it was set", genesisRoundTrip},
	{"the transfers of a block, a transaction and an address are listed in chain order", devchainLists},
	{"a log of a transaction is appended once", devchainKeysAreUnique},
}

func genesisRoundTrip(t *testing.T, st ports.Store) {
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if at, every, set, err := tx.Devchain().Genesis(ctx); set || err != nil || !at.IsZero() || every != 0 {
			t.Errorf("before it is set: %v, %v, %v, %v", at, every, set, err)
		}
		return nil
	})
	for _, at := range []time.Time{storeNow, storeNow.Add(time.Hour), time.UnixMicro(0).UTC(), time.UnixMicro(-1).UTC()} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return tx.Devchain().SetGenesis(ctx, at, time.Microsecond)
		})
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Devchain().SetGenesis(ctx, at, 3*time.Second) })
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, every, set, err := tx.Devchain().Genesis(ctx)
			if got != at || every != 3*time.Second || !set || err != nil {
				t.Errorf("set to %v: %v, %v, %v, %v", at, got, every, set, err)
			}
			return nil
		})
	}
}

// devTransfer returns a transfer as a chain has it.
func devTransfer(n int, from, to string) recharge.Transfer {
	x := transferNo(n, "")
	x.AgentID, x.OrderID, x.FirstSeen, x.From, x.To = "", "", time.Time{}, from, to
	return x
}

func devchainLists(t *testing.T, st ports.Store) {
	list := []recharge.Transfer{devTransfer(0, "Ta", "Tb"), devTransfer(1, "Tb", "Tc"), devTransfer(2, "Tb", "Tb"), devTransfer(3, "Tc", "Ta")}
	list[2].TxID, list[2].Block, list[2].BlockTime = list[1].TxID, list[1].Block, list[1].BlockTime
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for i := range list {
			if err := tx.Devchain().Append(ctx, list[len(list)-1-i]); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for blocks, want := range map[[2]int64][]recharge.Transfer{{1000, 1000}: list[:1], {1001, 1001}: list[1:3], {1002, 1002}: nil,
			{1003, 1003}: list[3:], {0, 1001}: list[:3], {1001, 2000}: list[1:], {1003, 1000}: nil} {
			got, err := tx.Devchain().Blocks(ctx, blocks[0], blocks[1])
			sameList(t, "the blocks", want, got, err)
		}
		for txID, want := range map[string][]recharge.Transfer{list[0].TxID: list[:1], list[1].TxID: list[1:3], "00": nil} {
			got, err := tx.Devchain().Transaction(ctx, txID)
			sameList(t, "the transaction", want, got, err)
		}
		for _, c := range []struct {
			address string
			from    int64
			want    []recharge.Transfer
		}{
			{"Tb", 0, list[:3]}, {"Tb", 1001, list[1:3]}, {"Tb", 1002, nil}, {"Ta", 1000, []recharge.Transfer{list[0], list[3]}},
			{"Ta", 1003, list[3:]}, {"Td", 0, nil},
		} {
			got, err := tx.Devchain().Touching(ctx, c.address, c.from)
			sameList(t, c.address, c.want, got, err)
		}
		return nil
	})
}

func devchainKeysAreUnique(t *testing.T, st ports.Store) {
	x := devTransfer(1, "Ta", "Tb")
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Devchain().Append(ctx, x) })
	x.Block++
	if err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error { return tx.Devchain().Append(ctx, x) }); err == nil {
		t.Error("a log was appended twice")
	}
	x.LogIndex++
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Devchain().Append(ctx, x) })
}
