package apptest

import "agentproxy/adapters/system"

// The root secret of a world, and another one.
var (
	RootSecret      = system.Root("0123456789abcdefghijklmnopqrstuvwxyz")
	OtherRootSecret = system.Root("zyxwvutsrqponmlkjihgfedcba9876543210")
)

// ReplaceRoot replaces the root secret. Previous are those that are still known.
func (w *World) ReplaceRoot(root system.Root, previous ...system.Root) {
	w.T.Helper()
	s, err := system.NewSecrets(root, previous...)
	OK(w.T, err)
	*w.Secrets = *s
}
