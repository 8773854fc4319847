package ratelimit

// ItemsOfACall is the number of items that a call makes, changes or reads for the cost of one, and that each
// further one pays for.
const ItemsOfACall = 25

// Beyond returns what items cost beyond the call itself.
func Beyond(items int) int { return max(items-1, 0) / ItemsOfACall }
