//go:build !cgo

package needscgo

var _ = install_a_C_compiler_such_as_gcc_and_build_with_CGO_ENABLED_1
