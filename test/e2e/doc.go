// Package e2e tests the whole service as its users meet it: the real program,
// a real database file, real sockets.
package e2e
