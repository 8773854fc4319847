package storage

import (
	"fmt"
	"strings"

	"agentproxy/domain"
)

// conditions builds the WHERE clause of a list.
type conditions struct {
	parts []string
	args  []any
}

// add adds a condition, in which each ? is replaced by the number of the value.
func (c *conditions) add(condition string, value any) {
	c.args = append(c.args, value)
	c.parts = append(c.parts, strings.ReplaceAll(condition, "?", fmt.Sprintf("?%d", len(c.args))))
}

// where returns the clause, empty without a condition.
func (c *conditions) where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}

// page adds the bounds of a page and returns their clause.
func (c *conditions) page(p domain.Page) string {
	c.args = append(c.args, p.Size, p.Offset())
	return fmt.Sprintf(" LIMIT ?%d OFFSET ?%d", len(c.args)-1, len(c.args))
}

// text adds a condition on a text, unless that is empty.
func (c *conditions) text(condition, value string) {
	if value != "" {
		c.add(condition, value)
	}
}
