package conns

// Budget divides the file descriptors of the process among its listeners. What is left
// over is for the database, calls of providers, webhooks and files.
type Budget struct {
	API     int // connections
	Admin   int // connections
	Gateway int // connections of clients; each may have one to a target besides
	Pipes   int // pipes of the relay, two descriptors each
}

// smallest is the number of descriptors below which all shares shrink in proportion.
const smallest = 1024

// Divide returns the shares of n descriptors. The zero Budget, for n of 0, has no limits.
func Divide(n int) Budget {
	if n <= 0 {
		return Budget{}
	}
	if n < smallest {
		b := Divide(smallest)
		part := func(share int) int { return max(share*n/smallest, 4) }
		return Budget{API: part(b.API), Admin: part(b.Admin), Gateway: part(b.Gateway), Pipes: part(b.Pipes)}
	}
	b := Budget{API: 96 + n/32, Admin: 32, Pipes: min(256, n/128)}
	reserve := 128 + n/64
	b.Gateway = (n - reserve - b.API - b.Admin - 2*b.Pipes) / 2
	return b
}
