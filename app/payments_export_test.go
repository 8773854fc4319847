package app

// SetFew sets up to how many watched addresses are read one by one.
func (p *Payments) SetFew(n int) { p.few = n }

// ByBlocks reports the way of reading.
func (p *Payments) ByBlocks() bool { return p.byBlocks }

// Few is what SetFew set.
func (p *Payments) Few() int { return p.few }
