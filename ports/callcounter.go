package ports

import "agentproxy/domain/procurement"

// CallCounter counts a call of a provider by its result; the zero Class is success. A nil one counts
// nothing.
type CallCounter func(provider, operation string, result procurement.Class)

// Count counts a call that returned err.
func (c CallCounter) Count(p Provider, operation string, err error) {
	if c != nil {
		c(p.Name(), operation, procurement.ClassOf(err))
	}
}
