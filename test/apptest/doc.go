// Package apptest builds the use cases of the packages of app on a database of a test, with
// sellers, clock and webhook receiver that the test controls, for the tests of the
// app packages.
package apptest
