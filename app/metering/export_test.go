package metering

// RuleSets returns how many sets of rules are kept.
func (t *Service) RuleSets() int {
	t.rules.mu.Lock()
	defer t.rules.mu.Unlock()
	return len(t.rules.by)
}
