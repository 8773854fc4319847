package domain

// Page asks for one page of a list, newest first. Number counts from 1; Size is
// 1 to MaxPageSize.
type Page struct {
	Number int
	Size   int
}

// The size of a page when the caller names none, and the largest one served.
const (
	DefaultPageSize = 20
	MaxPageSize     = 100
)

// Offset is how many items stand before the page. A page number so large that
// the product would overflow stands past the end of every list.
func (p Page) Offset() int {
	const past = 1 << 40
	if p.Number-1 > past/MaxPageSize {
		return past
	}
	return (p.Number - 1) * p.Size
}

// List is one page of items and how many there are in all.
type List[T any] struct {
	Items []T
	Page  Page
	Total int
}

// TotalPages is how many pages hold Total items; 0 for an empty list.
func (l List[T]) TotalPages() int { return (l.Total + l.Page.Size - 1) / l.Page.Size }
