package procurement

import (
	"context"
	"encoding/json"
	"fmt"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// usageCounts keeps a value a provider.
type usageCounts struct{ *work.Unit }

// UsageCounts returns the counts of used traffic in a unit.
func UsageCounts(u *work.Unit) ports.UsageCounts { return usageCounts{u} }

// usageCountPrefix begins the names of the values; usageCountEnd is behind all of them.
const usageCountPrefix, usageCountEnd = "usage-count:", "usage-count;"

func (r usageCounts) Put(_ context.Context, c ports.UsageCount) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("store the usage count of %s: %w", c.Provider, err)
	}
	return r.Later("store the usage count of "+c.Provider, `INSERT INTO service_values (name, value) VALUES (?1, ?2)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, usageCountPrefix+c.Provider, text)
}

func (r usageCounts) All(ctx context.Context) (map[string]ports.UsageCount, error) {
	all := map[string]ports.UsageCount{}
	const query = "SELECT value FROM service_values WHERE name >= ?1 AND name < ?2"
	err := r.Rows(ctx, query, []any{usageCountPrefix, usageCountEnd}, func(row engine.Row) error {
		var text []byte
		if err := row.Scan(&text); err != nil {
			return err
		}
		var c ports.UsageCount
		err := json.Unmarshal(text, &c)
		all[c.Provider] = c
		return err
	})
	return all, work.Wrap("read usage counts", err)
}
