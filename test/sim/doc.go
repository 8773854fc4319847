// Package sim plays agents, a chain and everything that goes wrong between them
// against the recharge use cases, and counts the money afterwards. A seed is a
// whole life: who orders, who pays what, which blocks are replaced, which calls
// and which units of work fail. A seed that ends badly can be played again:
//
//	go test ./test/sim -seeds=2000 -timeout 30m
//	go test ./test/sim -seed=17 -seeds=1 -v
//	go test ./test/sim -run OnPostgres -postgres=200 -timeout 30m
package sim
