package main

import (
	"errors"
	"fmt"

	"agentproxy/adapters/configfile"
)

type configCmd struct {
	Init  configInitCmd  `cmd:"" help:"Write a configuration file to begin with."`
	Check configCheckCmd `cmd:"" help:"Check variables and file as serve does, and list every problem with its line; touches no database."`
}

type configCheckCmd struct{}

// problem is the JSON form of a Fault.
type problem struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
}

func problems(faults []configfile.Fault) []problem {
	list := make([]problem, len(faults))
	for i, f := range faults {
		list[i] = problem(f)
	}
	return list
}

// Run checks the configuration.
func (configCheckCmd) Run(k *kit) error {
	settings, err := k.loader.Load()
	faults, warnings := configfile.FaultsOf(err), settings.Warnings
	providers, products := len(settings.Catalog.Providers), len(settings.Catalog.Products)
	plan := soldPlan{}
	if err == nil {
		if plan, err = planOf(settings); err != nil {
			return err
		}
	}
	if k.json {
		result := map[string]any{"ok": err == nil, "problems": problems(faults), "warnings": problems(warnings)}
		if err == nil {
			result["providers"], result["products"] = providers, products
			result["sold"], result["payment_addresses"] = plan.sold.objects(), plan.addresses
			result["findings"] = plan.findings
		}
		if err := writeJSON(k.out, result); err != nil {
			return err
		}
	} else {
		for _, f := range faults {
			fmt.Fprintln(k.out, f.Error())
		}
		for _, w := range warnings {
			fmt.Fprintln(k.out, "warning:", w.Error())
		}
		if err == nil {
			fmt.Fprintf(k.out, "ok: %s, %s\n", count(providers, "provider"), count(products, "product"))
			if err := plan.print(k); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return errors.New("the configuration has " + count(len(faults), "problem"))
	}
	return nil
}

// count returns a number of things in words.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}
