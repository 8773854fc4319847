// Package growth has the tests that measure calls on a large database beside a small one. They are built with the tag
// campaign.
package growth
