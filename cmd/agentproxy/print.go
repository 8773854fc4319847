package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// writeJSON prints one value, indented.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table is a list, printed as text or as a JSON array of objects.
type table struct {
	columns []string
	rows    [][]any
}

func (t *table) add(cells ...any) { t.rows = append(t.rows, cells) }

// objects returns the rows as JSON objects.
func (t *table) objects() []map[string]any {
	list := make([]map[string]any, len(t.rows))
	for i, row := range t.rows {
		list[i] = map[string]any{}
		for j, cell := range row {
			list[i][t.columns[j]] = cell
		}
	}
	return list
}

// print writes the table as text, or as JSON if the command prints JSON.
func (t *table) print(k *kit) error {
	if k.json {
		return writeJSON(k.out, t.objects())
	}
	w := tabwriter.NewWriter(k.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(t.columns, "\t")))
	for _, row := range t.rows {
		for j, cell := range row {
			if j > 0 {
				fmt.Fprint(w, "\t")
			}
			// Agents choose names: a control character must not reach the terminal.
			fmt.Fprint(w, strings.Map(printable, fmt.Sprint(cell)))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// csv writes the table as comma-separated values.
func (t *table) csv(out io.Writer) error {
	w := csv.NewWriter(out)
	_ = w.Write(t.columns) // Error returns what failed
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = fmt.Sprint(cell)
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return w.Error()
}

func printable(r rune) rune {
	if r < ' ' || r >= 0x7f && r < 0xa0 {
		return '?'
	}
	return r
}

// record prints fields: one per line as text, one object as JSON.
func (k *kit) record(fields ...any) error {
	object := map[string]any{}
	w := tabwriter.NewWriter(k.out, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(fields); i += 2 {
		object[fields[i].(string)] = fields[i+1]
		if !k.json {
			fmt.Fprintf(w, "%s\t%s\n", fields[i], strings.Map(printable, fmt.Sprint(fields[i+1])))
		}
	}
	if k.json {
		return writeJSON(k.out, object)
	}
	return w.Flush()
}
