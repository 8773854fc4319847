package domain

// Page asks for one page of a list, newest first. Number counts from 1; Size is
// 1 to MaxPageSize.
type Page struct {
	Number int
	Size   int
}

// MaxPageSize is the largest number of items on a page.
const MaxPageSize = 100

// Offset returns how many items precede the page. It returns a number past the
// end of every list if the product of number and size would overflow.
func (p Page) Offset() int {
	const past = 1 << 40
	if p.Number-1 > past/MaxPageSize {
		return past
	}
	return (p.Number - 1) * p.Size
}

// List is one page of items; Total counts the items of all pages.
type List[T any] struct {
	Items []T
	Page  Page
	Total int
}

// TotalPages returns how many pages hold Total items, 0 for an empty list.
func (l List[T]) TotalPages() int { return (l.Total + l.Page.Size - 1) / l.Page.Size }
