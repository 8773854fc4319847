// Package list sells proxies that the operator already has, from a list in a file or at a
// URL: as static addresses, each to one agent, or as a pool of dynamic exits. What is sold
// is recorded in the service's own store.
package list
