package connect_test

import (
	"fmt"

	"agentproxy/domain/connect"
)

// A proxy is shown with its password masked, and used with it.
func ExampleProxy_Masked() {
	p := connect.Proxy{Protocol: "http", Host: "gw.example.com", Port: 8080, Username: "abcr0", Password: "s3cret"}
	fmt.Println(p.URL())
	fmt.Println(p.Masked().Password == connect.Mask)
	// Output:
	// http://abcr0:s3cret@gw.example.com:8080
	// true
}

// A number n means the workers w1 to wn; names are separated by commas.
func ExampleParseWorkers() {
	fmt.Println(connect.ParseWorkers("3"))
	fmt.Println(connect.ParseWorkers("alice,bob"))
	// Output:
	// [w1 w2 w3] <nil>
	// [alice bob] <nil>
}
