// Package apptest builds the use cases of package app on a database of a test, with
// sellers, clock and webhook receiver that the test controls, for the tests of the
// app packages.
package apptest
