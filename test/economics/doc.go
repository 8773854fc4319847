// Package economics plays histories of what orders cost and bring in: sellers refuse,
// deliver late, get dearer, answer nothing, hide what they sold and show it again, while
// agents buy, renew, use and give up at every moment, also in the middle of a seller's
// call, and two replicas drive the orders, one of them with a wrong clock. Afterwards the
// sellers' books are compared with the ledger: what agents paid for what was delivered
// covers what is owed for it, nothing is held for ever, and nothing that a seller sold is
// without an order or a report. A seed is a history, which is the same each time:
//
//	go test ./test/economics -histories=2000 -timeout 30m
//	go test ./test/economics -seed=17 -histories=1 -v
package economics
