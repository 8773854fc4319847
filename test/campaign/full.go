//go:build campaign

package campaign

// tagged reports whether the build tag campaign is set.
const tagged = true
