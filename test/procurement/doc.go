// Package procurement plays agents who buy, renew, rotate and terminate against the
// real adapters of all sellers, whose fakes fail three requests of ten,
// while units of work fail, processes die and two replicas do the same work.
// Afterwards the sellers' books are compared with ours: what was really sold is
// what live sessions have or what was closed, nothing is sold twice, no money is
// held or charged for nothing. A seed that ends badly can be played again; work
// that runs side by side may then fall out differently, so play it several times:
//
//	go test ./test/procurement -seeds=10 -creates=10000 -timeout 30m
//	go test ./test/procurement -seed=17 -seeds=1 -count=5 -v
package procurement
