// Package needscgo stops a build without cgo with one line that names the remedy,
// before the SQLite driver fails with many. Go turns cgo off if it finds no C
// compiler.
package needscgo
