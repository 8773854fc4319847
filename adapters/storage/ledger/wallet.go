package ledger

import (
	"fmt"
	"strconv"
	"strings"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// Row is a row of wallets, without how many entries it has.
type Row struct {
	AgentID          string
	Trial            int64
	Own              int64
	HeldTrial        int64
	HeldOwn          int64
	TrialExpiresAt   int64
	TrialExpired     bool
	Funded           bool
	Credited         bool
	Charged          int64
	Refunded         int64
	Recharged        int64
	Adjusted         int64
	LiveSessions     int
	BudgetDaily      *int64
	BudgetTotal      *int64
	BudgetThresholds string
	BudgetPaused     bool
	SpentDay         int64
	SpentToday       int64
	RestrictedKeys   int
}

// TableName implements the Tabler of GORM.
func (Row) TableName() string { return "wallets" }

// Stored is a wallet and how many entries it has.
type Stored struct {
	billing.Wallet
	entries int64
}

// movedWallet is what entries and sessions change in a wallet.
type movedWallet struct {
	AgentID                                     string
	Trial, Own, HeldTrial, HeldOwn              int64
	Charged, Refunded, Recharged, Adjusted      int64
	Funded, Credited                            bool
	LiveSessions, SpentDay, SpentToday, Entries int64
}

var (
	// SelectWallets reads rows for ScanWallet; the agents follow it.
	SelectWallets = "SELECT " + strings.Join(column.Names(new(Row)), ", ") +
		", entries FROM wallets WHERE agent_id "
	moveWallets = rows.Update[movedWallet]("move wallets", "wallets", 1)
)

// Wallets has what entries move, and sessions that begin or end. Budgets are changed by statements.
var Wallets = &rows.Table[string, Stored]{
	Order:   work.WalletOrder,
	Keep:    true,
	Compare: strings.Compare,
	Find: func(s *rows.Set, agentID string) (w Stored, found bool, err error) {
		var row Row
		found, err = s.Find(column.Targets(&row, &w.entries), SelectWallets+"= ?1", "wallets", agentID)
		if err == nil && found {
			w.Wallet, err = FromRow(row)
		}
		return w, found, work.Wrap("read wallet of "+agentID, err)
	},
	Ahead: rows.Ahead[string, Stored]{
		What: "read wallets", Query: SelectWallets + "= " + work.AgentsOf, Locked: " ORDER BY agent_id FOR " + work.RowLock,
		Scan: func(row engine.Row) (string, Stored, error) {
			w, err := ScanWallet(row)
			return w.AgentID, w, err
		},
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[string, Stored]) error {
		return moveWallets.Write(to, rows.Map(changed, toMovedWallet))
	},
}

func toMovedWallet(c rows.Change[string, Stored]) movedWallet {
	r := toRow(c.Row.Wallet)
	return movedWallet{AgentID: r.AgentID, Trial: r.Trial, Own: r.Own, HeldTrial: r.HeldTrial,
		HeldOwn: r.HeldOwn, Charged: r.Charged, Refunded: r.Refunded, Recharged: r.Recharged, Adjusted: r.Adjusted,
		Funded: r.Funded, Credited: r.Credited, LiveSessions: int64(r.LiveSessions), SpentDay: r.SpentDay,
		SpentToday: r.SpentToday, Entries: c.Row.entries}
}

func toRow(w billing.Wallet) Row {
	return Row{
		AgentID:          w.AgentID,
		Trial:            int64(w.Available.Trial),
		Own:              int64(w.Available.Own),
		HeldTrial:        int64(w.Held.Trial),
		HeldOwn:          int64(w.Held.Own),
		TrialExpiresAt:   column.Micros(w.TrialExpiresAt),
		TrialExpired:     w.TrialExpired,
		Funded:           w.Funded,
		Credited:         w.Credited() > 0, // for programs of an earlier version
		Charged:          int64(w.Charged),
		Refunded:         int64(w.Refunded),
		Recharged:        int64(w.Recharged),
		Adjusted:         int64(w.Adjusted),
		LiveSessions:     w.LiveSessions,
		BudgetDaily:      (*int64)(w.Budget.Daily),
		BudgetTotal:      (*int64)(w.Budget.Total),
		BudgetThresholds: joinInts(w.Budget.Thresholds),
		BudgetPaused:     w.Budget.Paused,
		SpentDay:         column.Micros(w.SpentDay),
		SpentToday:       int64(w.SpentToday),
		RestrictedKeys:   w.RestrictedKeys,
	}
}

// FromRow returns the wallet of a row.
func FromRow(r Row) (billing.Wallet, error) {
	thresholds, err := splitInts(r.BudgetThresholds)
	if err != nil {
		return billing.Wallet{}, fmt.Errorf("thresholds of %s: %w", r.AgentID, err)
	}
	return billing.Wallet{
		AgentID:        r.AgentID,
		Available:      codec.Funds(r.Trial, r.Own),
		Held:           codec.Funds(r.HeldTrial, r.HeldOwn),
		TrialExpiresAt: column.Time(r.TrialExpiresAt),
		TrialExpired:   r.TrialExpired,
		Funded:         r.Funded,
		Charged:        domain.Money(r.Charged),
		Refunded:       domain.Money(r.Refunded),
		Recharged:      domain.Money(r.Recharged),
		Adjusted:       domain.Money(r.Adjusted),
		LiveSessions:   r.LiveSessions,
		Budget: billing.Budget{
			Daily:      (*domain.Money)(r.BudgetDaily),
			Total:      (*domain.Money)(r.BudgetTotal),
			Thresholds: thresholds,
			Paused:     r.BudgetPaused,
		},
		SpentDay:   column.Time(r.SpentDay),
		SpentToday: domain.Money(r.SpentToday),

		RestrictedKeys: r.RestrictedKeys,
	}, nil
}

func joinInts(numbers []int) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

func splitInts(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var numbers []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// ScanWallet scans a row of SelectWallets.
func ScanWallet(row engine.Row) (w Stored, err error) {
	var stored Row
	err = row.Scan(column.Targets(&stored, &w.entries)...)
	if err == nil {
		w.Wallet, err = FromRow(stored)
	}
	return w, err
}
