//go:build race

package e2e_test

// buildFlags make the program watch for races too.
var buildFlags = []string{"-race"}
