package work

import (
	"fmt"
	"strings"

	"agentproxy/domain"
)

// Conditions builds the WHERE clause of a list.
type Conditions struct {
	parts []string
	// Args are the values of the conditions, and of a page.
	Args []any
}

// Add adds a condition, in which each ? is replaced by the number of the value.
func (c *Conditions) Add(condition string, value any) {
	c.Args = append(c.Args, value)
	c.parts = append(c.parts, strings.ReplaceAll(condition, "?", fmt.Sprintf("?%d", len(c.Args))))
}

// Where returns the clause, empty without a condition.
func (c *Conditions) Where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}

// Page adds the bounds of a page and returns their clause.
func (c *Conditions) Page(p domain.Page) string {
	c.Args = append(c.Args, p.Size, p.Offset())
	return fmt.Sprintf(" LIMIT ?%d OFFSET ?%d", len(c.Args)-1, len(c.Args))
}

// Text adds a condition on a text, unless that is empty.
func (c *Conditions) Text(condition, value string) {
	if value != "" {
		c.Add(condition, value)
	}
}

// Words adds a condition as it is written.
func (c *Conditions) Words(condition string) { c.parts = append(c.parts, condition) }
