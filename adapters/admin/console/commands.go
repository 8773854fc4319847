package console

import (
	"context"
	"maps"
)

// joined returns all entries of some maps.
func joined(list ...map[string]action) map[string]action {
	all := map[string]action{}
	for _, m := range list {
		maps.Copy(all, m)
	}
	return all
}

// actions are what the console can do: each is a command of agentproxy, by the same use case.
var actions = joined(accountActions, serviceActions, map[string]action{
	"session-end": {Name: "session end", Title: "End a session", Button: "End the session",
		Done: "The session has ended.", Danger: true,
		Description: "Ends %s. Traffic that was not used, and the whole days that are left, are given back.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.use.Sessions.End(ctx, in.Subject)
			return in.session(), nil, err
		}},
	"refund": {Name: "refund", Title: "Refund a session", Button: "Refund", Done: "The refund is booked.", Once: true,
		Description: "Gives back a part of what %s was charged until now. Its agent sees the reason.",
		Fields:      []field{needed("percent", "Percent", "1 to 100, of everything that it was charged")}, Do: refund},
	"orders-adopt": {Page: "/sellers",
		Name: "orders adopt", Title: "Adopt an order", Button: "Adopt it", Done: "The order is adopted.",
		Description: "Decides that the seller did make the order %s. It is read there first.",
		Fields:      []field{{Name: "provider_ref", Label: "The seller's id of it", Hint: "A renewal needs none."}},
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.use.Orders.Adopt(ctx, in.Subject, in.get("provider_ref"))
			return "/sellers", nil, err
		}},
	"orders-release": {Page: "/sellers",
		Name: "orders release", Title: "Release an order", Button: "Release it",
		Done: "The order is released.", Danger: true,
		Description: "Decides that the seller did not make the order %s: the next source is tried, or the money given back.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.use.Orders.Release(ctx, in.Subject)
			return "/sellers", nil, err
		}},
	"orders-lost": {Page: "/sellers",
		Name: "orders lost", Title: "Give up an order", Button: "Give it up",
		Done: "The order is given up.", Danger: true,
		Description: "Decides that the seller does not have the order %s: its session ends, and the unused part is refunded.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.use.Orders.Lost(ctx, in.Subject)
			return "/sellers", nil, err
		}},
	"orders-reconcile": {Page: "/sellers",
		Name: "orders reconcile", Title: "Compare sellers' lists", Button: "Compare",
		Done:        "The lists are compared.",
		Description: "Compares what %s has with the orders, and cancels or adopts what is ours.", Do: compare},
	"exits-lookup": {Page: "/exits",
		Name: "exits lookup", Title: "Who used an exit", Button: "Look it up",
		Done:        "The look-up is kept.",
		Description: "Names who used an exit, or reached a target, at a time. That you asked is kept.",
		Fields: []field{needed("at", "When", "such as 2026-05-15T12:00:00Z"),
			{Name: "minutes", Label: "By how many minutes the clocks may differ", Value: "5", Required: true},
			{Name: "exit", Label: "Exit's address", Hint: "As the target saw it; or fill in one of the fields below."},
			{Name: "port", Label: "Its source port", Hint: "Without it every connection of the exit is listed."},
			{Name: "target", Label: "The target's host or address"}, {Name: "client", Label: "The client's address"},
			{Name: "agent", Label: "The agent's id"}, {Name: "seller", Label: "The seller"},
			{Name: "token", Label: "What names the exit to the seller"}},
		About: []string{"exit", "client", "agent", "seller", "token", "target"}, Do: lookUp},
	"exits-hold": {Page: "/exits",
		Name: "exits hold", Title: "Hold days of the exit log", Button: "Hold them",
		Done:        "The days are held.",
		Description: "Keeps UTC days of the exit log from deletion.",
		Fields: []field{{Name: "from", Label: "First day", Type: "date", Required: true},
			{Name: "to", Label: "Last day", Type: "date", Required: true}}, About: []string{"from", "to"}, Do: hold},
	"exits-release": {Page: "/exits",
		Name: "exits release", Title: "End a hold", Button: "End the hold",
		Done: "The hold has ended.", Danger: true,
		Description: "Ends the hold %s: its days are deleted when they are old enough.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			return "/exits", nil, c.use.Exits.Release(ctx, in.Subject)
		}},
})
