package payments

// SetAddressLimit sets how many watched addresses are read one by one at most. If
// more are watched, the chain is read by blocks.
func (p *Watcher) SetAddressLimit(n int) { p.few = n }

// AddressLimit returns how many watched addresses are read one by one at most.
func (p *Watcher) AddressLimit() int { return p.few }

// ByBlocks reports whether the last scan read the chain by blocks.
func (p *Watcher) ByBlocks() bool { return p.byBlocks }
