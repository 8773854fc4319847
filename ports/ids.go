package ports

// IDs makes ids: the prefix and at least 96 random bits as 20 lower case
// letters and digits.
type IDs interface {
	New(prefix string) string
}
