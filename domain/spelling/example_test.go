package spelling_test

import (
	"fmt"

	"agentproxy/domain/spelling"
)

// A misspelt field of a request gets a hint; another word gets none.
func ExampleNearMiss() {
	fmt.Println(spelling.NearMiss("quantitiy", "quantity"), spelling.NearMiss("amount", "quantity"))
	fmt.Println(spelling.Distance("quantitiy", "quantity"))
	// Output:
	// true false
	// 1
}
