// Package bench measures the whole service beside the least that could do the
// same, in one run, and reports the ratio: on a shared machine only that holds.
//
//	go test ./test/bench -run '^$' -bench .
package bench
