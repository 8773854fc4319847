package billing

import "agentproxy/domain"

// GB is the bytes of a gigabyte as it is sold: decimal, not binary.
const GB = 1_000_000_000

// TrafficHold returns what buying a number of bytes at a price per GB holds, rounded up to a
// micro-dollar.
func TrafficHold(bytes int64, perGB domain.Money) domain.Money {
	return domain.Money(domain.MulDiv(bytes, int64(perGB), GB, true))
}

// TrafficCharge returns what a number of bytes costs in all, rounded down. It is computed from the
// running total, so it does not matter how often a session is settled.
func TrafficCharge(bytes int64, perGB domain.Money) domain.Money {
	return domain.Money(domain.MulDiv(bytes, int64(perGB), GB, false))
}

// IPCost returns what a number of IPs costs at the price of one for the whole duration.
func IPCost(quantity int, perIP domain.Money) domain.Money {
	return domain.Money(domain.MulDiv(int64(quantity), int64(perIP), 1, false))
}

// UnusedDays returns the refund for a static purchase that ends early without a fault of the agent:
// the price of the whole days left, rounded down.
func UnusedDays(charged domain.Money, days, left int) domain.Money {
	if days <= 0 || left <= 0 {
		return 0
	}
	return domain.Money(domain.MulDiv(int64(charged), int64(min(left, days)), int64(days), false))
}
