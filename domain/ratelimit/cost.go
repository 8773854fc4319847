package ratelimit

// ItemsOfACall is the number of items that a call makes, changes or reads for the cost of one, and that each
// further one pays for.
const ItemsOfACall = 25

// WorkersOfAnItem is the number of workers whose health costs as much to sum up as an item to answer.
const WorkersOfAnItem = 8

// Beyond returns what items cost beyond the call itself.
func Beyond(items int) int { return max(items-1, 0) / ItemsOfACall }
