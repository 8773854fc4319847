package freeport_test

import (
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"

	"agentproxy/test/freeport"
)

// A program that another test starts has, until it runs, the sockets that were open.
func TestAddressIsFreeWhileProgramsStart(t *testing.T) {
	run := func() { _ = exec.Command(os.Args[0], "-test.run=^$").Run() }
	run() // the first one tries, without the lock, what the kernel offers
	stop := make(chan struct{})
	var starters sync.WaitGroup
	for range 4 {
		starters.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					run()
				}
			}
		})
	}
	for range 500 {
		l, err := net.Listen("tcp", freeport.Address(t))
		if err != nil {
			t.Error(err)
			continue
		}
		_ = l.Close()
	}
	close(stop)
	starters.Wait()
}
