package spelling_test

import (
	"fmt"

	"agentproxy/domain/spelling"
)

// A mistyped field of a request gets a hint; another word gets none.
func ExampleNearMiss() {
	fmt.Println(spelling.NearMiss("quanttity", "quantity"), spelling.NearMiss("amount", "quantity"))
	fmt.Println(spelling.Distance("quanttity", "quantity"))
	// Output:
	// true false
	// 1
}
