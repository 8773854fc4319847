package billing

import "agentproxy/domain"

// GB is the number of bytes of a gigabyte as it is sold: decimal, not binary.
const GB = 1_000_000_000

// TrafficHold returns the hold for buying bytes at a price per GB, rounded up
// to a micro-dollar.
func TrafficHold(bytes int64, perGB domain.Money) domain.Money {
	return domain.Money(domain.MulDivUp(bytes, int64(perGB), GB))
}

// TrafficCharge returns the price of the bytes used in all, rounded down. As it
// applies to the running total, the sum of the charges does not depend on how
// often a session is settled.
func TrafficCharge(bytes int64, perGB domain.Money) domain.Money {
	return domain.Money(domain.MulDiv(bytes, int64(perGB), GB))
}

// IPCost returns the price of a number of IPs at the price of one for the whole
// duration.
func IPCost(quantity int, perIP domain.Money) domain.Money {
	return domain.Money(domain.MulDiv(int64(quantity), int64(perIP), 1))
}

// UnusedDays returns the refund of a static purchase that ends early through no
// fault of the agent: the price of the whole days left, rounded down.
func UnusedDays(charged domain.Money, days, left int) domain.Money {
	if days <= 0 || left <= 0 {
		return 0
	}
	return domain.Money(domain.MulDiv(int64(charged), int64(min(left, days)), int64(days)))
}
