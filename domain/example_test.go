package domain_test

import (
	"errors"
	"fmt"

	"agentproxy/domain"
)

func ExampleParseMoney() {
	price, err := domain.ParseMoney("9.75")
	fmt.Println(price, int64(price), err)

	_, err = domain.ParseMoney("0.0000001")
	fmt.Println(err)
	// Output:
	// 9.75 9750000 <nil>
	// not an amount with at most 6 decimals
}

func ExampleMulDiv() {
	const gb = 1_000_000_000
	perGB := int64(domain.MustMoney("2.50"))
	fmt.Println(domain.Money(domain.MulDiv(gb/3, perGB, gb)), "rounded down")
	fmt.Println(domain.Money(domain.MulDivUp(gb/3, perGB, gb)), "rounded up")
	// Output:
	// 0.833333 rounded down
	// 0.833334 rounded up
}

// A refusal is compared with its sentinel, whatever its message and details.
func ExampleError_Is() {
	err := fmt.Errorf("create a session: %w", domain.InvalidField("quantity", "must be %d to %d", 1, 100))
	fmt.Println(errors.Is(err, domain.ErrInvalid), errors.Is(err, domain.ErrUnavailable))

	refusal, _ := errors.AsType[*domain.Error](err)
	fmt.Println(refusal.Code, refusal.Message)
	// Output:
	// true false
	// INVALID_REQUEST quantity must be 1 to 100
}

func ExamplePaged() {
	list := domain.Paged([]string{"a", "b", "c", "d", "e"}, domain.Page{Number: 2, Size: 2})
	fmt.Println(list.Items, "of", list.Total, "next after place", list.Next)
	// Output: [c d] of 5 next after place 4
}
