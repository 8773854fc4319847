// Command serve runs a PostgreSQL server for many test processes. It prints the URL that they take as
// TEST_POSTGRES_DSN, and stops the server at the end of its input.
package main

import (
	"fmt"
	"io"
	"os"

	"agentproxy/test/pg"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	s, err := pg.Run()
	if err != nil {
		return err
	}
	fmt.Println(s.URL("postgres"))
	_, err = io.Copy(io.Discard, os.Stdin)
	if stop := s.Stop("immediate"); stop != nil {
		return stop
	}
	return err
}
